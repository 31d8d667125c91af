"""What of the outbox is due, and what is known of it: read without a lock, acted upon by conditional updates."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, case, exists, func, or_, select

from rlvitals.contract import codec
from rlvitals.contract.alert import Alert, AlertState, Severity
from rlvitals.contract.codec import DecodeError
from rlvitals.contract.report import Phase
from rlvitals_monitor.store.numbers import from_micros, to_micros
from rlvitals_monitor.store.outbox import NEWS, OPEN, DeliveryState, in_chunks
from rlvitals_monitor.store.tables import alerts, deliveries, transitions
from rlvitals_monitor.store.tables import runs as run_table

_OVER = (Phase.FINISHED.value, Phase.FAILED.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """A delivery whose time has come. ``is_firing`` and ``acknowledged_by`` are of the alert as it is now.

    ``is_over``: its run finished or failed.
    """

    id: str
    transition: str
    alert: str
    run: str
    purpose: str
    was_silenced: bool
    severity: Severity
    after: AlertState
    is_firing: bool
    acknowledged_by: str
    is_over: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DueRun:
    """What is due of one run: since when, and the rank of the strongest that fires, -1 where none does.

    ``of_signs``: nothing but alerts about its signs of life.
    """

    run: str
    since: datetime
    rank: int
    of_signs: bool = False


class Told(str, Enum):
    """Whether a channel knows that an alert fires: not yet means that the news is still to come."""

    YES = "yes"
    NOT_YET = "not yet"
    NO = "no"


def is_due(conn: Connection, channel: str, now: datetime) -> bool:
    """A cheap look: deliveries that wait for their message, with their time come."""
    return conn.execute(select(deliveries.c.id).where(_is_open(channel, now)).limit(1)).first() is not None


def due_runs(conn: Connection, channel: str, now: datetime, of_signs: Collection[str] = ()) -> list[DueRun]:
    """The runs of which something is due; the rules ``of_signs`` are those about signs of life."""
    ranks = {severity.value: severity.rank for severity in Severity}
    fires = transitions.c.after == AlertState.FIRING.value
    rank = case((fires, case(ranks, value=alerts.c.severity, else_=0)), else_=-1)
    others = func.max(case((alerts.c.rule.in_(list(of_signs)), 0), else_=1)).label("others")
    since = func.min(deliveries.c.next_at).label("since")
    query = (
        select(transitions.c.run, since, func.max(rank).label("rank"), others)
        .join(transitions, transitions.c.id == deliveries.c.transition)
        .join(alerts, alerts.c.id == transitions.c.alert)
        .where(_is_open(channel, now), ~_is_overtaking(now))
        .group_by(transitions.c.run)
    )
    return [
        DueRun(run=row.run, since=from_micros(row.since), rank=row.rank, of_signs=not row.others)
        for row in conn.execute(query)
    ]


def due(conn: Connection, channel: str, now: datetime, runs: Collection[str], limit: int) -> list[Due]:
    """What is due of these runs, in the order of what happened."""
    found: list[Due] = []
    for some in in_chunks(list(runs)):
        query = (
            select(
                deliveries.c.id,
                deliveries.c.transition,
                deliveries.c.purpose,
                deliveries.c.state,
                transitions.c.alert,
                transitions.c.run,
                transitions.c.after,
                alerts.c.severity,
                (alerts.c.state == AlertState.FIRING.value).label("is_firing"),
                alerts.c.body["acknowledged_by"].as_string().label("acknowledged_by"),
                run_table.c.phase.in_(_OVER).label("is_over"),
            )
            .join(transitions, transitions.c.id == deliveries.c.transition)
            .join(alerts, alerts.c.id == transitions.c.alert)
            .join(run_table, run_table.c.id == transitions.c.run)
            .where(_is_open(channel, now), transitions.c.run.in_(some), ~_is_overtaking(now))
            .order_by(transitions.c.at, transitions.c.step, deliveries.c.id)
            .limit(limit - len(found))
        )
        found += [_due(row) for row in conn.execute(query)]
    return found


def told(conn: Connection, channel: str, of_alerts: Collection[str]) -> dict[str, Told]:
    """What the channel knows of each of these alerts' firing; one that is not in it was never routed there."""
    known: dict[str, Told] = {}
    for some in in_chunks(list(of_alerts)):
        query = (
            select(transitions.c.alert, deliveries.c.state, deliveries.c.purpose, deliveries.c.message)
            .join(transitions, transitions.c.id == deliveries.c.transition)
            .where(
                deliveries.c.channel == channel,
                transitions.c.alert.in_(some),
                transitions.c.after == AlertState.FIRING.value,
            )
        )
        for row in conn.execute(query):
            told_by_this = _told(row.state, row.purpose, row.message)
            known[row.alert] = max(known.get(row.alert, Told.NO), told_by_this, key=_SURENESS.index)
    return known


def firing(conn: Connection, run: str, limit: int) -> set[str]:
    """The newest alerts of a run that fire now."""
    query = select(alerts.c.id).where(alerts.c.run == run, alerts.c.state == AlertState.FIRING.value)
    return set(conn.scalars(query.order_by(alerts.c.since_time.desc(), alerts.c.id).limit(limit)))


def read_alerts(conn: Connection, ids: Collection[str]) -> dict[str, Alert]:
    """Alerts as they are now; one that cannot be read is left out."""
    found: dict[str, Alert] = {}
    for some in in_chunks(list(ids)):
        for key, body in conn.execute(select(alerts.c.id, alerts.c.body).where(alerts.c.id.in_(some))):
            try:
                found[key] = codec.decode(Alert, body)
            except DecodeError:
                continue
    return found


def _is_open(channel: str, now: datetime) -> ColumnElement[bool]:
    return and_(
        deliveries.c.channel == channel,
        deliveries.c.state.in_(OPEN),
        deliveries.c.next_at <= to_micros(now),
        deliveries.c.message.is_(None),
    )


def _is_overtaking(now: datetime) -> ColumnElement[bool]:
    """An alert's later change does not go while an earlier one is on its way, or waits for its time as news.

    One EXISTS in the other, so that SQLite goes by the alert's few changes and not through all deliveries.
    """
    earlier, before = deliveries.alias(), transitions.alias()
    is_late = and_(earlier.c.purpose == NEWS, earlier.c.next_at > to_micros(now))
    is_open = (
        exists()
        .where(
            earlier.c.transition == before.c.id,
            earlier.c.channel == deliveries.c.channel,
            earlier.c.state.in_(OPEN),
            or_(earlier.c.message.is_not(None), is_late),
        )
        .correlate(before, deliveries)
    )
    is_before = or_(
        before.c.at < transitions.c.at,
        and_(before.c.at == transitions.c.at, before.c.step < transitions.c.step),
    )
    return exists().where(before.c.alert == transitions.c.alert, is_before, is_open)


_SURENESS = (Told.NO, Told.NOT_YET, Told.YES)


def _told(state: str, purpose: str, message: str | None) -> Told:
    if state == DeliveryState.DELIVERED.value:
        return Told.YES
    is_coming = state in OPEN and (message is not None or purpose == NEWS)
    return Told.NOT_YET if is_coming else Told.NO


def _due(row: Row[Any]) -> Due:
    return Due(
        id=row.id,
        transition=row.transition,
        alert=row.alert,
        run=row.run,
        purpose=row.purpose,
        was_silenced=row.state == DeliveryState.SILENCED.value,
        severity=Severity(row.severity),
        after=AlertState(row.after),
        is_firing=bool(row.is_firing),
        acknowledged_by=row.acknowledged_by or "",
        is_over=bool(row.is_over),
    )
