"""The outbox: one row for each thing that a channel is to hear of a transition, written as it is routed.

A row waits for its time, is put into a message (`store.messages`) and shares that message's fate, or is dropped
with its reason. Every change is a conditional update: however many processes race, one row changes once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Connection, Table, and_, select, update
from sqlalchemy.dialects import postgresql, sqlite

from rlvitals.contract.alert import AlertState
from rlvitals_monitor.store.numbers import to_micros
from rlvitals_monitor.store.tables import deliveries, transitions
from rlvitals_monitor.store.words import storable

ANSWER_LIMIT = 500
CHUNK = 1000
"""Ids in one statement."""
NEWS, REMINDER, ESCALATION = "news", "reminder", "escalation"


class DeliveryState(str, Enum):
    WAITING = "waiting"
    SILENCED = "silenced"
    DELIVERED = "delivered"
    FAILED = "failed"
    DROPPED = "dropped"


_Any = TypeVar("_Any")

OPEN = (DeliveryState.WAITING.value, DeliveryState.SILENCED.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What a channel is to hear, and not before when."""

    channel: str
    due: datetime
    purpose: str = NEWS


def delivery_id(transition: str, channel: str, purpose: str = NEWS, round: int = 0) -> str:
    """Always the same for the same four."""
    which = "" if purpose == NEWS else f"\n{purpose}\n{round}"
    return hashlib.sha256(f"delivery\n{transition}\n{channel}{which}".encode()).hexdigest()[:32]


def add(conn: Connection, transition: str, orders: Iterable[Order]) -> int:
    """Writes the rows that are not there yet; answers how many."""
    rows = [_fresh(transition, order.channel, order.purpose, 0, to_micros(order.due)) for order in orders]
    return insert_new(conn, deliveries, rows) if rows else 0


def postpone(conn: Connection, ids: Sequence[str], until: datetime, why: str, *, silenced: bool = False) -> None:
    """They are looked at again at ``until``."""
    state = DeliveryState.SILENCED if silenced else DeliveryState.WAITING
    for some in in_chunks(ids):
        values = {"state": state.value, "next_at": to_micros(until), "answer": storable(why, ANSWER_LIMIT)}
        conn.execute(update(deliveries).where(_is_loose(some)).values(values))


def hasten(conn: Connection, delivery: str, due: datetime) -> bool:
    """Moves one that still waits for its time to ``due``; False where it is on its way, over or not there."""
    soon = update(deliveries).where(_is_loose([delivery])).values(next_at=to_micros(due))
    return conn.execute(soon).rowcount > 0


def drop(conn: Connection, ids: Sequence[str], why: str) -> None:
    """They will never be sent; the reason stays."""
    for some in in_chunks(ids):
        values = {"state": DeliveryState.DROPPED.value, "answer": storable(why, ANSWER_LIMIT)}
        conn.execute(update(deliveries).where(_is_loose(some)).values(values))


def put_into(conn: Connection, ids: Sequence[str], message: str) -> int:
    """Gives the deliveries that no other message has to this one; answers how many those were."""
    done = 0
    for some in in_chunks(ids):
        values = {"state": DeliveryState.WAITING.value, "message": message, "answer": ""}
        done += conn.execute(update(deliveries).where(_is_loose(some)).values(values)).rowcount
    return done


def settle(
    conn: Connection, message: str, state: DeliveryState, attempts: int, answer: str, delivered: datetime | None
) -> None:
    """The deliveries of a message share its fate."""
    of_it = and_(deliveries.c.message == message, deliveries.c.state == DeliveryState.WAITING.value)
    at = None if delivered is None else to_micros(delivered)
    values = {"state": state.value, "attempts": attempts, "answer": storable(answer, ANSWER_LIMIT)}
    conn.execute(update(deliveries).where(of_it).values(**values, delivered_at=at))


def fail(conn: Connection, ids: Sequence[str], answer: str) -> None:
    """Single deliveries that cannot be shown, within a message or without."""
    values = {"state": DeliveryState.FAILED.value, "answer": storable(answer, ANSWER_LIMIT)}
    for some in in_chunks(ids):
        conn.execute(update(deliveries).where(deliveries.c.id.in_(some)).values(values))


def remind(conn: Connection, message: str, due: datetime) -> int:
    """Adds the next reminder of each firing alert that the message told of; how many are new."""
    query = (
        select(deliveries.c.transition, deliveries.c.channel, deliveries.c.round)
        .join(transitions, transitions.c.id == deliveries.c.transition)
        .where(
            deliveries.c.message == message,
            deliveries.c.state == DeliveryState.DELIVERED.value,
            transitions.c.after == AlertState.FIRING.value,
        )
    )
    at = to_micros(due)
    rows = [_fresh(row.transition, row.channel, REMINDER, row.round + 1, at) for row in conn.execute(query)]
    return sum(insert_new(conn, deliveries, some) for some in in_chunks(rows))


def insert_new(conn: Connection, table: Table, rows: Sequence[dict[str, Any]]) -> int:
    """Rows whose key is there already are left alone, also when another process is writing them just now."""
    build = postgresql.insert if conn.dialect.name == "postgresql" else sqlite.insert
    new = build(table).values(list(rows)).on_conflict_do_nothing().returning(*table.primary_key)
    return len(conn.execute(new).all())


def in_chunks(some: Sequence[_Any]) -> Iterator[Sequence[_Any]]:
    for start in range(0, len(some), CHUNK):
        yield some[start : start + CHUNK]


def _fresh(transition: str, channel: str, purpose: str, round: int, due: int) -> dict[str, Any]:
    return {
        "id": delivery_id(transition, channel, purpose, round),
        "transition": transition,
        "channel": channel,
        "purpose": purpose,
        "round": round,
        "state": DeliveryState.WAITING.value,
        "attempts": 0,
        "next_at": due,
        "answer": "",
    }


def _is_loose(ids: Sequence[str]) -> ColumnElement[bool]:
    return and_(deliveries.c.id.in_(ids), deliveries.c.state.in_(OPEN), deliveries.c.message.is_(None))
