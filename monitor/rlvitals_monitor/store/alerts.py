"""Alerts as they are now, and their transitions: the rows are what notify and control work off."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, or_, select, update
from sqlalchemy.dialects import postgresql, sqlite

from rlvitals.contract import codec
from rlvitals.contract.alert import Alert, AlertState, Transition
from rlvitals_monitor.store.deletion import of_a_deleted
from rlvitals_monitor.store.numbers import from_micros, to_micros
from rlvitals_monitor.store.tables import alerts, attempts, transitions
from rlvitals_monitor.store.words import storable

WHO_LIMIT = 128
OPEN = (AlertState.PENDING.value, AlertState.FIRING.value)

Cursor = tuple[int, str]
"""(since_time in microseconds, id) of the last alert of a page."""


def find(connection: Connection, alert: str) -> Alert | None:
    body = connection.scalar(select(alerts.c.body).where(alerts.c.id == alert))
    return None if body is None else codec.decode(Alert, body)


def save(connection: Connection, attempt_number: int, alert: Alert) -> None:
    """Writes the alert as it is now; the caller holds the run's lock."""
    row = {
        "id": alert.id,
        "run": alert.run,
        "attempt": attempt_number,
        "rule": alert.rule,
        "severity": alert.severity.value,
        "state": alert.state.value,
        "since_step": alert.since_step,
        "since_time": to_micros(alert.since_time),
        "body": alert,
    }
    statement = _insert(connection)(alerts).values(row)
    changed = {name: statement.excluded[name] for name in row if name != "id"}
    connection.execute(statement.on_conflict_do_update(index_elements=["id"], set_=changed))


def add_transition(connection: Connection, transition: Transition) -> bool:
    """Records a change of state once; False when it is there already."""
    row = {
        "id": transition.id,
        "alert": transition.alert.id,
        "run": transition.alert.run,
        "before": transition.before.value,
        "after": transition.after.value,
        "step": transition.step,
        "at": to_micros(transition.at),
        "reason": transition.reason,
        "body": transition.alert,
        "routed": False,
    }
    statement = _insert(connection)(transitions).values(row).on_conflict_do_nothing().returning(transitions.c.id)
    return connection.scalar(statement) is not None


def unrouted(connection: Connection, limit: int) -> list[Transition]:
    """At most ``limit`` transitions that nobody has passed on yet, oldest first; locked against other workers."""
    query = (
        select(transitions)
        .where(transitions.c.routed.is_(False))
        .order_by(transitions.c.at, transitions.c.step, transitions.c.id)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    return [transition_of(row) for row in connection.execute(query)]


def mark_routed(connection: Connection, ids: Iterable[str]) -> None:
    connection.execute(update(transitions).where(transitions.c.id.in_(list(ids))).values(routed=True))


def open_before(connection: Connection, run: str, attempt_number: int) -> list[int]:
    """Earlier attempts that still have open alerts."""
    ordinal = select(attempts.c.ordinal).where(attempts.c.number == attempt_number).scalar_subquery()
    rows = connection.scalars(
        select(alerts.c.attempt)
        .join(attempts, attempts.c.number == alerts.c.attempt)
        .where(alerts.c.run == run, alerts.c.state.in_(OPEN), attempts.c.ordinal < ordinal)
        .distinct()
        .order_by(alerts.c.attempt)
    )
    return list(rows)


def page(
    connection: Connection,
    *,
    run: str | None = None,
    states: Sequence[AlertState] = (),
    after: Cursor | None = None,
    limit: int = 50,
) -> tuple[list[Alert], Cursor | None]:
    """Alerts from the newest on. Without ``states`` those that were pending and never fired are left out."""
    query = select(alerts).where(~of_a_deleted(alerts.c.run))
    query = query.order_by(alerts.c.since_time.desc(), alerts.c.id.desc()).limit(limit + 1)
    if run is not None:
        query = query.where(alerts.c.run == run)
    if states:
        query = query.where(alerts.c.state.in_([state.value for state in states]))
    else:
        query = query.where(alerts.c.state != AlertState.INACTIVE.value)
    if after is not None:
        query = query.where(_beyond(after))
    rows = connection.execute(query).all()
    shown = rows[:limit]
    following = (shown[-1].since_time, shown[-1].id) if len(rows) > limit else None
    return [codec.decode(Alert, row.body) for row in shown], following


def transitions_of(
    connection: Connection, run: str, limit: int, attempt_number: int | None = None
) -> list[Transition]:
    """The newest ``limit`` changes of a run, oldest first."""
    query = select(transitions).where(transitions.c.run == run)
    if attempt_number is not None:
        query = query.join(alerts, alerts.c.id == transitions.c.alert).where(alerts.c.attempt == attempt_number)
    newest_first = (transitions.c.at.desc(), transitions.c.step.desc(), transitions.c.id.desc())
    rows = connection.execute(query.order_by(*newest_first).limit(limit)).all()
    return [transition_of(row) for row in reversed(rows)]


def last_firing(connection: Connection, alert: str) -> Transition | None:
    """The newest change by which it began to fire."""
    query = select(transitions).where(transitions.c.alert == alert, transitions.c.after == AlertState.FIRING.value)
    row = connection.execute(query.order_by(transitions.c.at.desc(), transitions.c.step.desc()).limit(1)).first()
    return None if row is None else transition_of(row)


def set_acknowledged(connection: Connection, alert: Alert, who: str) -> Alert:
    """Notes by name who looks after it, "" for nobody; the caller holds the run's lock."""
    noted = replace(alert, acknowledged_by=storable(who, WHO_LIMIT))
    connection.execute(update(alerts).where(alerts.c.id == alert.id).values(body=noted))
    return noted


def _beyond(after: Cursor) -> ColumnElement[bool]:
    at, alert = after
    return or_(alerts.c.since_time < at, and_(alerts.c.since_time == at, alerts.c.id < alert))


def transition_of(row: Row[Any]) -> Transition:
    """A row of transitions. Raises `DecodeError` where its alert cannot be read."""
    return Transition(
        id=row.id,
        alert=codec.decode(Alert, row.body),
        before=AlertState(row.before),
        after=AlertState(row.after),
        step=row.step,
        at=from_micros(row.at),
        reason=row.reason,
    )


def _insert(connection: Connection) -> Any:
    return postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
