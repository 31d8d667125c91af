"""Puts the large tables of a PostgreSQL into parts, or together again, while the service goes on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from sqlalchemy import Connection, Table
from sqlalchemy.exc import OperationalError

from rlvitals_monitor.database.backup import BackupError
from rlvitals_monitor.store import partitions, snapshot
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.partitions import Key, Piece

PARTS = 16
ROWS_A_TRANSACTION = 10_000
TRIES = 100
LOCK_WAIT_MS = 200
"""While it waits for a table, everybody else waits behind it; and it has given way before PostgreSQL, after a
second, would end one of two that wait for each other."""
_BUSY = frozenset({"55P03", "40P01"})
"""PostgreSQL's words for a lock that was not to be had in time, and for two that waited for each other."""

T = TypeVar("T")
Left = list[tuple[int, Key]]
"""Owners of rows that are yet to be copied, and where each was left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parted:
    """What became of a table; ``changed`` is False where it was in this form already."""

    table: str
    rows: int
    changed: bool


def partition(store: Store, parts: int, *, pause: Callable[[float], None] = time.sleep) -> Iterator[Parted]:
    """Table after table; ``parts`` = 0 makes each one again. Raises `BackupError`, with the table as it was."""
    if store.is_sqlite:
        raise BackupError("an SQLite store has no parts: see `rlvitals db move`")
    if not 0 <= parts <= partitions.PARTS_MAX or parts == 1:
        raise BackupError(f"expected 2 to {partitions.PARTS_MAX} parts, or 0 for one table, got {parts}")
    if not store.is_current():
        raise BackupError("the schema is not up to date: run `rlvitals db migrate`")
    for table in partitions.LARGE:
        with store.read() as connection:
            before = partitions.count_parts(connection, table)
        if before == parts:
            _patiently(store, lambda connection, table=table: partitions.abandon(connection, table), pause)  # type: ignore[misc]
            yield Parted(table=table.name, rows=0, changed=False)
        else:
            yield Parted(table=table.name, rows=_change(store, table, parts, pause), changed=True)


def _change(store: Store, table: Table, parts: int, pause: Callable[[float], None]) -> int:
    _patiently(store, lambda connection: partitions.begin(connection, table, parts), pause)
    while found := _next(store, table):
        for piece in found:
            _copy(store, table, piece, pause)
    try:
        with snapshot.frozen(store) as connection:
            rows = partitions.prove(connection, table)
    except partitions.NotTheSame as error:
        _patiently(store, lambda connection: partitions.abandon(connection, table), pause)
        raise BackupError(f"{error}; all is as it was: run `rlvitals db check`") from error
    _patiently(store, lambda connection: partitions.swap(connection, table), pause)
    with store.begin() as connection:
        partitions.analyze(connection, table)
    return rows


def _next(store: Store, table: Table) -> list[Piece]:
    with store.read() as connection:
        return list(partitions.pieces(connection, table, limit=100))


def _copy(store: Store, table: Table, piece: Piece, pause: Callable[[float], None]) -> None:
    """One attempt, in transactions of at most `ROWS_A_TRANSACTION` rows."""
    with store.read() as connection:
        left: Left = [(owner, ()) for owner in partitions.owners(connection, table, piece)]
    while left:
        left = _patiently(store, lambda connection, now=left: _copy_some(connection, table, piece, now), pause)  # type: ignore[misc]
    _patiently(store, lambda connection: partitions.mark_done(connection, table, piece), pause)


def _copy_some(connection: Connection, table: Table, piece: Piece, left: Left) -> Left:
    """What is left after it."""
    partitions.lock_run(connection, piece)
    room = ROWS_A_TRANSACTION
    for place, (owner, after) in enumerate(left):
        rows, reached = partitions.copy(connection, table, owner, after, room)
        room -= rows
        if not room:
            return [(owner, reached), *left[place + 1 :]]
    return []


def _patiently(store: Store, act: Callable[[Connection], T], pause: Callable[[float], None]) -> T:
    """In a transaction that gives way where others are in its way, and comes again."""
    for _ in range(TRIES):
        try:
            with store.begin() as connection:
                partitions.wait_for_locks(connection, LOCK_WAIT_MS)
                return act(connection)
        except OperationalError as error:
            if getattr(error.orig, "sqlstate", None) not in _BUSY:
                raise
            pause(1.0)
    raise BackupError(
        "somebody holds a table all the time, such as a backup: run this again, it goes on where it was"
    )
