"""Deliveries as people see them: by transition, and in sum for each channel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, and_, func, or_, select

from rlvitals.contract.view import DeliveryView
from rlvitals_monitor.store.deletion import of_a_deleted
from rlvitals_monitor.store.numbers import from_micros
from rlvitals_monitor.store.outbox import OPEN, DeliveryState
from rlvitals_monitor.store.tables import alerts, deliveries, messages, transitions

Cursor = tuple[int, str]
"""(time in microseconds, id) of the last row of a page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How a channel has fared: deliveries by state, and the provider's last words."""

    waiting: int = 0
    delivered: int = 0
    failed: int = 0
    dropped: int = 0
    answer: str = ""


def standings(conn: Connection) -> dict[str, Standing]:
    counts = conn.execute(
        select(deliveries.c.channel, deliveries.c.state, func.count()).group_by(
            deliveries.c.channel, deliveries.c.state
        )
    ).all()
    by_channel: dict[str, dict[str, int]] = {}
    for channel, state, count in counts:
        shown = DeliveryState.WAITING.value if state in OPEN else state
        of_channel = by_channel.setdefault(channel, {})
        of_channel[shown] = of_channel.get(shown, 0) + count
    return {name: Standing(answer=_last_answer(conn, name), **states) for name, states in by_channel.items()}


def page(
    conn: Connection, *, run: str | None = None, after: Cursor | None = None, limit: int = 50
) -> tuple[tuple[DeliveryView, ...], Cursor | None]:
    """Deliveries of a run (or of all), newest transition first; the cursor is None on the last page."""
    query = (
        select(
            deliveries,
            transitions.c.at,
            transitions.c.run,
            transitions.c.after,
            transitions.c.step,
            alerts.c.rule,
            alerts.c.severity,
            messages.c.attempts.label("tried"),
            messages.c.next_at.label("again_at"),
            messages.c.answer.label("said"),
        )
        .join(transitions, transitions.c.id == deliveries.c.transition)
        .join(alerts, alerts.c.id == transitions.c.alert)
        .outerjoin(messages, messages.c.id == deliveries.c.message)
        .where(~of_a_deleted(transitions.c.run))
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


def _last_answer(conn: Connection, channel: str) -> str:
    last = (
        select(messages.c.answer)
        .where(messages.c.channel == channel, messages.c.answer != "")
        .order_by(messages.c.created_at.desc())
        .limit(1)
    )
    return conn.scalar(last) or ""


def _view(row: Row[Any]) -> DeliveryView:
    is_sealed = row.tried is not None
    return DeliveryView(
        id=row.id,
        transition_id=row.transition,
        channel=row.channel,
        purpose=row.purpose,
        round=row.round,
        message_id=row.message or "",
        state=row.state,
        attempts=row.tried if is_sealed else row.attempts,
        next_at=from_micros(row.again_at if is_sealed else row.next_at),
        answer=row.answer or row.said or "",
        delivered_at=None if row.delivered_at is None else from_micros(row.delivered_at),
        run=row.run,
        rule=row.rule,
        severity=row.severity,
        change=row.after,
        step=row.step,
    )
