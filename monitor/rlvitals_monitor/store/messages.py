"""Messages: what goes to a channel at once. Sealed from deliveries, claimed with a lease, sent, recorded.

A message never changes after it was sealed: it is sent again as it was, under the same id, which serves the
receiver as idempotency key. A claim that is never recorded (its process died) runs out with its lease. Each
attempt is kept with the provider's own words.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, or_, select, update

from rlvitals.contract.view import SendView
from rlvitals_monitor.store import outbox
from rlvitals_monitor.store.numbers import from_micros, to_micros
from rlvitals_monitor.store.outbox import ANSWER_LIMIT, DeliveryState, insert_new
from rlvitals_monitor.store.tables import deliveries, messages, sends
from rlvitals_monitor.store.words import storable

_WAITING = DeliveryState.WAITING.value


class SealLost(Exception):
    """Another process has put one of the deliveries into a message meanwhile; the transaction must not be kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A message that is ours until the lease ends. ``attempts`` counts this one; ``run`` is None for a digest."""

    id: str
    owner: str
    channel: str
    attempts: int
    run: str | None


def message_id(ids: Sequence[str]) -> str:
    """Always the same for the same deliveries."""
    return hashlib.sha256("\n".join(["message", *sorted(ids)]).encode()).hexdigest()[:32]


def is_due(conn: Connection, channel: str, now: datetime) -> bool:
    """A cheap look, without a claim."""
    return conn.execute(_due(channel, now)).first() is not None


def claim(conn: Connection, channel: str, owner: str, now: datetime, *, lease_s: float) -> Claim | None:
    """Takes the message of a channel that is due longest; None when there is none."""
    found = conn.execute(_due(channel, now).with_for_update(skip_locked=True)).first()
    if found is None:
        return None
    lease = {"claimed_by": owner, "claimed_until": to_micros(now + timedelta(seconds=lease_s))}
    done = conn.execute(
        update(messages)
        .where(messages.c.id == found.id, _is_claimable(now))
        .values(**lease, attempts=messages.c.attempts + 1)
    )
    if done.rowcount != 1:
        return None
    return Claim(id=found.id, owner=owner, channel=channel, attempts=found.attempts + 1, run=found.run)


def seal(
    conn: Connection,
    channel: str,
    run: str | None,
    ids: Sequence[str],
    owner: str,
    now: datetime,
    *,
    lease_s: float,
) -> Claim:
    """Puts deliveries into a new message, claimed at once. Raises `SealLost` when one of them is taken."""
    key = message_id(ids)
    row = {
        "id": key,
        "channel": channel,
        "run": run,
        "state": _WAITING,
        "attempts": 1,
        "created_at": to_micros(now),
        "next_at": to_micros(now),
        "claimed_by": owner,
        "claimed_until": to_micros(now + timedelta(seconds=lease_s)),
        "answer": "",
    }
    if insert_new(conn, messages, [row]) != 1 or outbox.put_into(conn, ids, key) != len(ids):
        raise SealLost
    return Claim(id=key, owner=owner, channel=channel, attempts=1, run=run)


def note(conn: Connection, taken: Claim, verdict: str, answer: str, now: datetime) -> None:
    """Keeps what the provider said to this attempt, whoever records what becomes of the message."""
    row = {
        "message": taken.id,
        "number": taken.attempts,
        "at": to_micros(now),
        "verdict": verdict,
        "answer": storable(answer, ANSWER_LIMIT),
    }
    insert_new(conn, sends, [row])


def record_delivered(conn: Connection, taken: Claim, answer: str, now: datetime) -> bool:
    """The provider has it, even if our lease ran out meanwhile. False when another has recorded that already."""
    if not _record(conn, _is_waiting(taken), DeliveryState.DELIVERED, answer, delivered_at=to_micros(now)):
        return False
    outbox.settle(conn, taken.id, DeliveryState.DELIVERED, taken.attempts, answer, now)
    return True


def record_retry(conn: Connection, taken: Claim, answer: str, next_at: datetime) -> bool:
    """To be tried again. False when the lease ran out and the message is another's now."""
    return _record(conn, _is_ours(taken), DeliveryState.WAITING, answer, next_at=to_micros(next_at))


def record_failed(conn: Connection, taken: Claim, answer: str) -> bool:
    """Given up, and shown. False when the lease ran out and the message is another's now."""
    if not _record(conn, _is_ours(taken), DeliveryState.FAILED, answer):
        return False
    outbox.settle(conn, taken.id, DeliveryState.FAILED, taken.attempts, answer, None)
    return True


def sends_of(conn: Connection, delivery: str) -> tuple[SendView, ...] | None:
    """Each attempt to send the message that a delivery was put into; None where there is no such delivery."""
    found = conn.execute(select(deliveries.c.message).where(deliveries.c.id == delivery)).one_or_none()
    if found is None:
        return None
    rows = conn.execute(select(sends).where(sends.c.message == found.message).order_by(sends.c.number))
    return tuple(
        SendView(number=row.number, at=from_micros(row.at), verdict=row.verdict, answer=row.answer) for row in rows
    )


def _is_claimable(now: datetime) -> ColumnElement[bool]:
    at = to_micros(now)
    is_free = or_(messages.c.claimed_by.is_(None), messages.c.claimed_until <= at)
    return and_(messages.c.state == _WAITING, messages.c.next_at <= at, is_free)


def _due(channel: str, now: datetime) -> Select[Any]:
    return (
        select(messages.c.id, messages.c.attempts, messages.c.run)
        .where(messages.c.channel == channel, _is_claimable(now))
        .order_by(messages.c.next_at, messages.c.created_at, messages.c.id)
        .limit(1)
    )


def _is_waiting(taken: Claim) -> ColumnElement[bool]:
    return and_(messages.c.id == taken.id, messages.c.state == _WAITING)


def _is_ours(taken: Claim) -> ColumnElement[bool]:
    return and_(_is_waiting(taken), messages.c.claimed_by == taken.owner)


def _record(
    conn: Connection, which: ColumnElement[bool], state: DeliveryState, answer: str, **values: int
) -> bool:
    said = storable(answer, ANSWER_LIMIT)
    done = conn.execute(
        update(messages).where(which).values(state=state.value, answer=said, claimed_by=None, **values)
    )
    return done.rowcount == 1
