"""Copies a whole store into another one, SQLite or PostgreSQL, and proves that it arrived: counts and digests.

A digest is over every value of every row in the order of the primary key, the same on both databases. The only
thing that it takes for the same is -0.0 and 0.0, which SQLite does not tell apart.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from sqlalchemy import Connection, Select, Table, collate, func, select, text
from sqlalchemy.types import JSON, String, Text

from rlvitals.contract import codec
from rlvitals_monitor.store.tables import METADATA

ROWS_A_PIECE = 5_000

TABLES: tuple[Table, ...] = tuple(METADATA.sorted_tables)
"""In an order in which no row comes before one that it refers to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What is in one table."""

    table: str
    rows: int
    digest: str


class Incomplete(Exception):
    """What arrived is not what was sent."""


def copy_all(source: Connection, target: Connection) -> tuple[Content, ...]:
    """Copies all tables into a migrated store, in the place of what is there, and reads them back; raises
    `Incomplete`.

    Both connections stay in their transactions: ``source`` must see one state throughout.
    """
    _clear(target)
    sent = []
    for table in TABLES:
        digest = _Digest(table)
        for rows in _pieces(source, table):
            digest.add(rows)
            _write(target, table, rows)
        sent.append(digest.content())
    _number_on(target)
    for before, after in zip(sent, measure(target), strict=True):
        if before != after:
            raise Incomplete(
                f"table {before.table}: {before.rows} rows were sent and {after.rows} are there"
                if before.rows != after.rows
                else f"table {before.table}: its {after.rows} rows are not what was sent"
            )
    return tuple(sent)


def measure(connection: Connection) -> Iterator[Content]:
    """Reads every row of every table."""
    for table in TABLES:
        digest = _Digest(table)
        for rows in _pieces(connection, table):
            digest.add(rows)
        yield digest.content()


def _clear(connection: Connection) -> None:
    if connection.dialect.name == "postgresql":
        connection.execute(text("TRUNCATE " + ", ".join(f'"{table.name}"' for table in TABLES)))
        return
    for table in reversed(TABLES):
        connection.execute(table.delete())


def is_empty(connection: Connection) -> bool:
    """A store in which no run was ever reported and nobody is known."""
    for name in ("runs", "audit", "users", "tokens"):
        if connection.execute(select(METADATA.tables[name]).limit(1)).first() is not None:
            return False
    return True


class _Digest:
    def __init__(self, table: Table) -> None:
        self._table, self._rows, self._hash = table.name, 0, hashlib.sha256()

    def add(self, rows: Sequence[Any]) -> None:
        self._rows += len(rows)
        self._hash.update(_spelt([tuple(row) for row in rows]))

    def content(self) -> Content:
        return Content(table=self._table, rows=self._rows, digest=self._hash.hexdigest())


def _spelt(rows: list[tuple[Any, ...]]) -> bytes:
    """The same bytes for the same rows, with -0.0 as 0.0."""
    try:
        spelt = orjson.dumps(rows, default=_hex)
    except TypeError:
        # integers beyond 64 bits and lone surrogates, which orjson refuses
        spelt = codec.dumps([[_hex(v) if isinstance(v, bytes | memoryview) else v for v in row] for row in rows])
    return spelt.replace(b"-0.0,", b"0.0,").replace(b"-0.0]", b"0.0]")


def _hex(value: Any) -> str:
    if isinstance(value, bytes | memoryview):
        return value.hex()
    raise TypeError(f"no column has a {type(value).__name__}")


def _pieces(connection: Connection, table: Table) -> Iterator[Sequence[Any]]:
    streamed = {"stream_results": True, "yield_per": ROWS_A_PIECE}
    with connection.execute(_in_order(connection, table), execution_options=streamed) as result:
        yield from result.partitions(ROWS_A_PIECE)


def _in_order(connection: Connection, table: Table) -> Select[Any]:
    """By bytes, which is SQLite's own order and which no locale changes."""
    plain = connection.dialect.name == "sqlite"
    order = [
        column if plain or not isinstance(column.type, String | Text) else collate(column, "C")
        for column in table.primary_key
    ]
    return select(table).order_by(*order)


def _write(connection: Connection, table: Table, rows: Sequence[Any]) -> None:
    names = ", ".join(f'"{column.name}"' for column in table.columns)
    coded = [place for place, column in enumerate(table.columns) if isinstance(column.type, JSON)]
    plain = [_coded(row, coded) for row in rows] if coded else [tuple(row) for row in rows]
    if connection.dialect.name == "sqlite":
        marks = ", ".join("?" for _ in table.columns)
        connection.exec_driver_sql(f'INSERT INTO "{table.name}" ({names}) VALUES ({marks})', plain)
        return
    raw: Any = connection.connection.driver_connection
    with raw.cursor() as cursor, cursor.copy(f'COPY "{table.name}" ({names}) FROM STDIN') as copy:
        for row in plain:
            copy.write_row(row)


def _coded(row: Sequence[Any], places: Sequence[int]) -> tuple[Any, ...]:
    """With JSON as text."""
    values = list(row)
    for place in places:
        if values[place] is not None:
            values[place] = codec.dumps(values[place]).decode("ascii")
    return tuple(values)


def _number_on(connection: Connection) -> None:
    """PostgreSQL counts on behind the highest number that came; SQLite does so by itself."""
    if connection.dialect.name == "sqlite":
        return
    for table in TABLES:
        number = table.autoincrement_column
        if number is None:
            continue
        highest = connection.scalar(select(func.max(number))) or 0
        connection.execute(
            text("SELECT setval(pg_get_serial_sequence(:table, :column), :value, :called)"),
            {"table": table.name, "column": number.name, "value": max(1, highest), "called": highest > 0},
        )
