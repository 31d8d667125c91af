"""The outbox: one row for each transition and channel, written as it is routed, claimed with a lease.

A claim is a conditional update (``SKIP LOCKED`` on PostgreSQL), and so is every record of what came of it: however
many dispatchers race, one row changes once. A claim that is never recorded (its process died) runs out with its
lease and the same row, with the same id, is sent again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, Table, and_, exists, func, or_, select, update
from sqlalchemy.dialects import postgresql, sqlite

from rlvitals.contract import codec
from rlvitals.contract.alert import Alert, AlertState, Transition
from rlvitals.contract.codec import DecodeError
from rlvitals.contract.report import RunInfo
from rlvitals.contract.view import DeliveryView
from rlvitals_monitor.store.numbers import from_micros, to_micros
from rlvitals_monitor.store.tables import deliveries, meta, runs, transitions
from rlvitals_monitor.store.words import storable

ANSWER_LIMIT = 500

Cursor = tuple[int, str]
"""(time in microseconds, id) of the last row of a page."""


class DeliveryState(str, Enum):
    WAITING = "waiting"
    DELIVERED = "delivered"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A delivery that is ours until the lease ends. ``attempts`` counts this one."""

    id: str
    owner: str
    attempts: int
    transition: Transition
    run: RunInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How a channel has fared: messages by state, and the provider's last words."""

    waiting: int = 0
    delivered: int = 0
    failed: int = 0
    answer: str = ""


def delivery_id(transition: str, channel: str) -> str:
    """Always the same for the same two, so it serves the receiver as idempotency key."""
    return hashlib.sha256(f"delivery\n{transition}\n{channel}".encode()).hexdigest()[:32]


def add(conn: Connection, transition: str, channels: Mapping[str, datetime]) -> int:
    """Writes the rows that are not there yet, each due at its channel's time; answers how many."""
    rows = [_fresh(transition, channel, due) for channel, due in channels.items()]
    return _insert_new(conn, deliveries, rows) if rows else 0


def is_due(conn: Connection, channel: str, now: datetime) -> bool:
    """A cheap look, without a claim."""
    return conn.execute(_due(channel, now)).first() is not None


def claim(
    conn: Connection, channel: str, owner: str, now: datetime, *, lease_s: float, gap_s: float
) -> Claim | None:
    """Takes the oldest due delivery of a channel, and the channel's turn; None when there is neither."""
    found = conn.execute(_due(channel, now).with_for_update(skip_locked=True, of=deliveries)).first()
    if found is None or not _take_turn(conn, channel, now, gap_s):
        return None
    done = conn.execute(
        update(deliveries)
        .where(deliveries.c.id == found.id, _claimable(now))
        .values(
            claimed_by=owner,
            claimed_until=to_micros(now + timedelta(seconds=lease_s)),
            attempts=deliveries.c.attempts + 1,
        )
    )
    return _readable(conn, found.id, owner) if done.rowcount == 1 else None


def record_delivered(conn: Connection, taken: Claim, answer: str, now: datetime) -> bool:
    """The provider has it, even if our lease ran out meanwhile. False when another has recorded that already."""
    return _record(
        conn, _is_waiting(taken), state=DeliveryState.DELIVERED, answer=answer, delivered_at=to_micros(now)
    )


def record_retry(conn: Connection, taken: Claim, answer: str, next_at: datetime) -> bool:
    """To be tried again. False when the lease ran out and the delivery is another's now."""
    return _record(conn, _is_ours(taken), state=DeliveryState.WAITING, answer=answer, next_at=to_micros(next_at))


def record_failed(conn: Connection, taken: Claim, answer: str) -> bool:
    """Given up, and shown. False when the lease ran out and the delivery is another's now."""
    return _record(conn, _is_ours(taken), state=DeliveryState.FAILED, answer=answer)


def hold_channel(conn: Connection, channel: str, until: datetime) -> None:
    """Nothing goes to this channel before ``until``: the provider asked for a rest."""
    _ensure_turn(conn, channel)
    mark = _turn_mark(until)
    conn.execute(update(meta).where(meta.c.key == _turn_key(channel), meta.c.value < mark).values(value=mark))


def standings(conn: Connection) -> dict[str, Standing]:
    counts = conn.execute(
        select(deliveries.c.channel, deliveries.c.state, func.count()).group_by(
            deliveries.c.channel, deliveries.c.state
        )
    ).all()
    by_channel: dict[str, dict[str, int]] = {}
    for channel, state, count in counts:
        by_channel.setdefault(channel, {})[state] = count
    return {name: Standing(answer=_last_answer(conn, name), **states) for name, states in by_channel.items()}


def page(
    conn: Connection, *, run: str | None = None, after: Cursor | None = None, limit: int = 50
) -> tuple[tuple[DeliveryView, ...], Cursor | None]:
    """Deliveries of a run (or of all), newest transition first; the cursor is None on the last page."""
    query = (
        select(deliveries, transitions.c.at)
        .join(transitions, transitions.c.id == deliveries.c.transition)
        .order_by(transitions.c.at.desc(), deliveries.c.id.desc())
        .limit(limit + 1)
    )
    if run is not None:
        query = query.where(transitions.c.run == run)
    if after is not None:
        at, key = after
        query = query.where(or_(transitions.c.at < at, and_(transitions.c.at == at, deliveries.c.id < key)))
    rows = conn.execute(query).all()
    more = (rows[limit - 1].at, rows[limit - 1].id) if len(rows) > limit else None
    return tuple(_view(row) for row in rows[:limit]), more


def _fresh(transition: str, channel: str, due: datetime) -> dict[str, Any]:
    return {
        "id": delivery_id(transition, channel),
        "transition": transition,
        "channel": channel,
        "state": DeliveryState.WAITING.value,
        "attempts": 0,
        "next_at": to_micros(due),
        "answer": "",
    }


def _claimable(now: datetime) -> ColumnElement[bool]:
    at = to_micros(now)
    free = or_(deliveries.c.claimed_by.is_(None), deliveries.c.claimed_until <= at)
    return and_(deliveries.c.state == DeliveryState.WAITING.value, deliveries.c.next_at <= at, free)


def _due(channel: str, now: datetime) -> Select[Any]:
    """An alert's recovery never overtakes the news that it fires."""
    earlier, before = deliveries.alias(), transitions.alias()
    is_overtaking = exists().where(
        earlier.c.transition == before.c.id,
        earlier.c.channel == deliveries.c.channel,
        earlier.c.state == DeliveryState.WAITING.value,
        before.c.alert == transitions.c.alert,
        or_(
            before.c.at < transitions.c.at,
            and_(before.c.at == transitions.c.at, before.c.step < transitions.c.step),
        ),
    )
    return (
        select(deliveries.c.id)
        .join(transitions, transitions.c.id == deliveries.c.transition)
        .where(deliveries.c.channel == channel, _claimable(now), ~is_overtaking)
        .order_by(deliveries.c.next_at, transitions.c.at, deliveries.c.id)
        .limit(1)
    )


def _turn_key(channel: str) -> str:
    return f"channel:{channel}"


def _turn_mark(moment: datetime) -> str:
    """Of fixed width, so that texts compare as the times do."""
    return f"{to_micros(moment):020d}"


def _ensure_turn(conn: Connection, channel: str) -> None:
    key = _turn_key(channel)
    if conn.scalar(select(meta.c.value).where(meta.c.key == key)) is None:
        _insert_new(conn, meta, [{"key": key, "value": "0" * 20}])


def _take_turn(conn: Connection, channel: str, now: datetime, gap_s: float) -> bool:
    """One conditional update is the whole rate limit, for all processes together."""
    _ensure_turn(conn, channel)
    ours = and_(meta.c.key == _turn_key(channel), meta.c.value <= _turn_mark(now))
    if gap_s <= 0.0:
        return conn.scalar(select(meta.c.key).where(ours)) is not None
    following = _turn_mark(now + timedelta(seconds=gap_s))
    return conn.execute(update(meta).where(ours).values(value=following)).rowcount == 1


def _insert_new(conn: Connection, table: Table, rows: list[dict[str, Any]]) -> int:
    """Rows whose key is there already are left alone, also when another process is writing them just now."""
    build = postgresql.insert if conn.dialect.name == "postgresql" else sqlite.insert
    new = build(table).values(rows).on_conflict_do_nothing().returning(*table.primary_key)
    return len(conn.execute(new).all())


def _is_waiting(taken: Claim) -> ColumnElement[bool]:
    return and_(deliveries.c.id == taken.id, deliveries.c.state == DeliveryState.WAITING.value)


def _is_ours(taken: Claim) -> ColumnElement[bool]:
    return and_(_is_waiting(taken), deliveries.c.claimed_by == taken.owner)


def _record(
    conn: Connection, which: ColumnElement[bool], *, state: DeliveryState, answer: str, **values: int
) -> bool:
    done = conn.execute(
        update(deliveries)
        .where(which)
        .values(state=state.value, answer=storable(answer, ANSWER_LIMIT), claimed_by=None, **values)
    )
    return done.rowcount == 1


def _readable(conn: Connection, key: str, owner: str) -> Claim | None:
    """A row that cannot be read is given up and shown: it must not keep its channel from all others."""
    try:
        return _read_claim(conn, key, owner)
    except DecodeError as error:
        which = and_(deliveries.c.id == key, deliveries.c.claimed_by == owner)
        _record(conn, which, state=DeliveryState.FAILED, answer=f"unreadable: {error}")
        return None


def _read_claim(conn: Connection, key: str, owner: str) -> Claim:
    row = conn.execute(
        select(
            deliveries.c.attempts,
            transitions,
            runs.c.project,
            runs.c.name,
            runs.c.framework,
            runs.c.model,
        )
        .join(transitions, transitions.c.id == deliveries.c.transition)
        .join(runs, runs.c.id == transitions.c.run)
        .where(deliveries.c.id == key)
    ).one()
    run = RunInfo(id=row.run, project=row.project, name=row.name, framework=row.framework, model=row.model)
    return Claim(id=key, owner=owner, attempts=row.attempts, transition=_transition(row), run=run)


def _transition(row: Row[Any]) -> Transition:
    return Transition(
        id=row.id,
        alert=codec.decode(Alert, row.body),
        before=AlertState(row.before),
        after=AlertState(row.after),
        step=row.step,
        at=from_micros(row.at),
        reason=row.reason,
    )


def _last_answer(conn: Connection, channel: str) -> str:
    last = (
        select(deliveries.c.answer)
        .where(deliveries.c.channel == channel, deliveries.c.answer != "")
        .order_by(deliveries.c.claimed_until.desc())
        .limit(1)
    )
    return conn.scalar(last) or ""


def _view(row: Row[Any]) -> DeliveryView:
    return DeliveryView(
        id=row.id,
        transition_id=row.transition,
        channel=row.channel,
        state=row.state,
        attempts=row.attempts,
        next_at=from_micros(row.next_at),
        answer=row.answer,
        delivered_at=None if row.delivered_at is None else from_micros(row.delivered_at),
    )
