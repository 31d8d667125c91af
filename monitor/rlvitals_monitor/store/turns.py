"""Whose turn it is on a channel: one row of ``meta`` for each, which all processes that deliver share.

It holds the moment before which nothing goes to the channel: the least gap between two messages, or the rest that
the provider asked for. Its lock makes those who seal or claim messages of one channel take turns.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import Connection, and_, func, select, update

from rlvitals_monitor.store.numbers import to_micros
from rlvitals_monitor.store.outbox import DeliveryState, insert_new
from rlvitals_monitor.store.tables import messages, meta, sends

WINDOW = timedelta(seconds=60)
"""A channel's budget is of messages in any time as long as this."""
HOLD_MAX = timedelta(hours=2)
"""No gap and no rest that a provider may ask for is longer: a mark beyond it is of a clock that ran ahead."""


def lock(conn: Connection, channel: str, now: datetime) -> bool:
    """Holds the channel's row to the transaction's end. False when nothing may go to the channel yet."""
    _ensure(conn, channel)
    mark = conn.scalar(select(meta.c.value).where(meta.c.key == _key(channel)).with_for_update())
    if mark is not None and mark > _mark(now + HOLD_MAX):
        mark = _mark(now)
        conn.execute(update(meta).where(meta.c.key == _key(channel)).values(value=mark))
    return mark is not None and mark <= _mark(now)


def take(conn: Connection, channel: str, now: datetime, gap_s: float) -> None:
    """The next message may go after the gap. The caller holds the lock."""
    if gap_s > 0.0:
        hold(conn, channel, now + timedelta(seconds=gap_s))


def hold(conn: Connection, channel: str, until: datetime) -> None:
    """Nothing goes to this channel before ``until``."""
    _ensure(conn, channel)
    mark = _mark(until)
    conn.execute(update(meta).where(meta.c.key == _key(channel), meta.c.value < mark).values(value=mark))


def spent(conn: Connection, channel: str, now: datetime) -> int:
    """Attempts in the `WINDOW` before ``now``, those in flight included; not what a clock that ran ahead noted."""
    since = to_micros(now - WINDOW)
    sent = (
        select(func.count())
        .select_from(sends)
        .join(messages, messages.c.id == sends.c.message)
        .where(messages.c.channel == channel, sends.c.at > since, sends.c.at <= to_micros(now + WINDOW))
    )
    in_flight = and_(
        messages.c.channel == channel,
        messages.c.state == DeliveryState.WAITING.value,
        messages.c.claimed_by.is_not(None),
        messages.c.claimed_until > to_micros(now),
    )
    flying = select(func.count()).select_from(messages).where(in_flight)
    return int(conn.scalar(sent) or 0) + int(conn.scalar(flying) or 0)


def _key(channel: str) -> str:
    return f"channel:{channel}"


def _mark(moment: datetime) -> str:
    """Of fixed width, so that texts compare as the times do."""
    return f"{to_micros(moment):020d}"


def _ensure(conn: Connection, channel: str) -> None:
    if conn.scalar(select(meta.c.value).where(meta.c.key == _key(channel))) is None:
        insert_new(conn, meta, [{"key": _key(channel), "value": "0" * 20}])
