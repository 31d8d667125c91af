"""How large the database is, and what waits in it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Select, func, select, text

from rlvitals.contract.command import CommandState
from rlvitals.contract.health import QueueView
from rlvitals_monitor.store.deletion import is_there, of_a_deleted
from rlvitals_monitor.store.evaluations import select_behind
from rlvitals_monitor.store.numbers import from_micros, to_micros
from rlvitals_monitor.store.outbox import DeliveryState
from rlvitals_monitor.store.tables import commands, deliveries, runs


def size_bytes(connection: Connection) -> int:
    """Of the whole database with its indices; on SQLite without the write-ahead log."""
    if connection.dialect.name == "sqlite":
        pages = connection.scalar(text("PRAGMA page_count"))
        return int(pages or 0) * int(connection.scalar(text("PRAGMA page_size")) or 0)
    return int(connection.scalar(text("SELECT pg_database_size(current_database())")) or 0)


def count_runs(connection: Connection) -> int:
    return int(connection.scalar(select(func.count()).select_from(runs).where(is_there())) or 0)


def read_queues(connection: Connection, now: datetime) -> tuple[QueueView, ...]:
    return (_judging(connection), _messages(connection, now), _decisions(connection, now))


def _judging(connection: Connection) -> QueueView:
    return _queue("judging", connection, select_behind(func.count(), func.min(runs.c.progress_at)))


def _messages(connection: Connection, now: datetime) -> QueueView:
    due = deliveries.c.state == DeliveryState.WAITING.value, deliveries.c.next_at <= to_micros(now)
    return _queue("messages", connection, select(func.count(), func.min(deliveries.c.next_at)).where(*due))


def _decisions(connection: Connection, now: datetime) -> QueueView:
    open_ = (
        commands.c.state == CommandState.PROPOSED.value,
        commands.c.expires_at > to_micros(now),
        ~of_a_deleted(commands.c.run),
    )
    return _queue("decisions", connection, select(func.count(), func.min(commands.c.created_at)).where(*open_))


def _queue(name: str, connection: Connection, query: Select[int, Any]) -> QueueView:
    waiting, oldest = connection.execute(query).one()
    return QueueView(name=name, waiting=waiting, since=None if oldest is None else from_micros(oldest))
