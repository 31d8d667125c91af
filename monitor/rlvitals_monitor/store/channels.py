"""Channels that were made by the API: their bodies as they were written, secrets included."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, and_, delete, func, select, update
from sqlalchemy.dialects import postgresql, sqlite

from rlvitals_monitor.store.numbers import from_micros, to_micros
from rlvitals_monitor.store.outbox import ANSWER_LIMIT, OPEN, DeliveryState
from rlvitals_monitor.store.tables import channels, deliveries, messages
from rlvitals_monitor.store.words import storable

WHO_LIMIT = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """``body`` holds the keys of a channel file but the name."""

    name: str
    body: Mapping[str, Any]
    changed_at: datetime
    changed_by: str


def read_all(conn: Connection) -> tuple[Written, ...]:
    """By name."""
    return tuple(_written(row) for row in conn.execute(select(channels).order_by(channels.c.name)))


def find(conn: Connection, name: str) -> Written | None:
    """Locked to the end of the transaction where the database can."""
    row = conn.execute(select(channels).where(channels.c.name == name).with_for_update()).one_or_none()
    return None if row is None else _written(row)


def count(conn: Connection) -> int:
    return conn.scalar(select(func.count()).select_from(channels)) or 0


def create(conn: Connection, name: str, body: Mapping[str, Any], who: str, now: datetime) -> bool:
    """False where the name is taken, also where somebody takes it just now."""
    build = postgresql.insert if conn.dialect.name == "postgresql" else sqlite.insert
    row = {"name": name, **_row(body, who, now)}
    new = build(channels).values(row).on_conflict_do_nothing().returning(channels.c.name)
    return conn.scalar(new) is not None


def change(conn: Connection, name: str, body: Mapping[str, Any], who: str, now: datetime) -> bool:
    """False where there is none of this name."""
    done = conn.execute(update(channels).where(channels.c.name == name).values(**_row(body, who, now)))
    return done.rowcount == 1


def remove(conn: Connection, name: str) -> bool:
    """False where there was none."""
    return conn.execute(delete(channels).where(channels.c.name == name)).rowcount == 1


def drop_waiting(conn: Connection, name: str, why: str) -> int:
    """What waits for the channel, within a message or not yet, is never sent; the reason stays. How many."""
    waits = and_(messages.c.channel == name, messages.c.state == DeliveryState.WAITING.value)
    told = {"state": DeliveryState.DROPPED.value, "answer": storable(why, ANSWER_LIMIT)}
    conn.execute(update(messages).where(waits).values(**told, claimed_by=None))
    open_ones = and_(deliveries.c.channel == name, deliveries.c.state.in_(OPEN))
    return conn.execute(update(deliveries).where(open_ones).values(**told)).rowcount


def _row(body: Mapping[str, Any], who: str, now: datetime) -> dict[str, Any]:
    return {"body": dict(body), "changed_at": to_micros(now), "changed_by": storable(who, WHO_LIMIT)}


def _written(row: Row[Any]) -> Written:
    return Written(name=row.name, body=row.body, changed_at=from_micros(row.changed_at), changed_by=row.changed_by)
