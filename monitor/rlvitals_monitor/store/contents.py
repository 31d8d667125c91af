"""What a message holds: its deliveries' transitions, counts of them by run, and what a channel heard lately."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, case, func, select

from rlvitals.contract.alert import AlertState, Severity, Transition
from rlvitals.contract.codec import DecodeError
from rlvitals_monitor.store import outbox
from rlvitals_monitor.store.alerts import transition_of
from rlvitals_monitor.store.numbers import from_micros, to_micros
from rlvitals_monitor.store.outbox import in_chunks
from rlvitals_monitor.store.tables import alerts, deliveries, messages, transitions

_WITH_ALERTS = deliveries.join(transitions, transitions.c.id == deliveries.c.transition).join(
    alerts, alerts.c.id == transitions.c.alert
)
_RANKS = {severity.value: severity.rank for severity in Severity}


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One delivery of a message."""

    purpose: str
    transition: Transition


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """How many changes of one kind a message holds."""

    run: str
    after: AlertState
    rule: str
    severity: Severity
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Lately:
    """When a channel last heard of a run, and the rank of the strongest that it heard of as firing, or -1."""

    at: datetime
    rank: int


def read_parts(conn: Connection, message: str, limit: int) -> list[Part]:
    """The strongest ``limit`` deliveries of a message, those that fire first, in the order of what happened.

    One that cannot be read is given up and shown: it must not keep the others from being told.
    """
    strength = case(_RANKS, value=alerts.c.severity, else_=0)
    fires = case((transitions.c.after == AlertState.FIRING.value, 1), else_=0)
    query = (
        select(deliveries.c.id.label("delivery"), deliveries.c.purpose, transitions)
        .join(transitions, transitions.c.id == deliveries.c.transition)
        .join(alerts, alerts.c.id == transitions.c.alert)
        .where(deliveries.c.message == message, deliveries.c.state == outbox.DeliveryState.WAITING.value)
        .order_by(fires.desc(), strength.desc(), transitions.c.at, transitions.c.step, deliveries.c.id)
        .limit(limit)
    )
    found: list[Part] = []
    for row in conn.execute(query).all():
        try:
            found.append(Part(purpose=row.purpose, transition=transition_of(row)))
        except DecodeError as error:
            outbox.fail(conn, [row.delivery], f"unreadable: {error}")
    return sorted(found, key=lambda part: (part.transition.at, part.transition.step, part.transition.id))


def count_parts(conn: Connection, message: str) -> list[Count]:
    """Over all deliveries of the message: the counts add up to their number."""
    of_it = deliveries.c.message == message
    columns = (transitions.c.run, transitions.c.after, alerts.c.rule, alerts.c.severity)
    query = select(*columns, func.count().label("count")).select_from(_WITH_ALERTS)
    return [
        Count(
            run=row.run,
            after=AlertState(row.after),
            rule=row.rule,
            severity=Severity(row.severity),
            count=int(row[4]),
        )
        for row in conn.execute(query.where(of_it).group_by(*columns).order_by(*columns))
    ]


def heard_lately(conn: Connection, channel: str, runs: Collection[str], since: datetime) -> dict[str, Lately]:
    """Of which of these runs a message was sealed after ``since``."""
    fires = transitions.c.after == AlertState.FIRING.value
    rank = case((fires, case(_RANKS, value=alerts.c.severity, else_=0)), else_=-1)
    found: dict[str, Lately] = {}
    for some in in_chunks(list(runs)):
        columns = (transitions.c.run, func.max(messages.c.created_at).label("at"), func.max(rank).label("rank"))
        source = _WITH_ALERTS.join(messages, messages.c.id == deliveries.c.message)
        query = (
            select(*columns)
            .select_from(source)
            .where(
                messages.c.channel == channel,
                messages.c.created_at > to_micros(since),
                transitions.c.run.in_(some),
            )
        )
        for row in conn.execute(query.group_by(transitions.c.run)):
            found[row.run] = Lately(at=from_micros(row.at), rank=row.rank)
    return found
