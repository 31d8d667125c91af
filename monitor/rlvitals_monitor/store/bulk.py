"""Many rows by one statement: executemany on SQLite; on PostgreSQL arrays through ``unnest``, or COPY."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import JSON, BigInteger, Boolean, Connection, Float, Integer, SmallInteger, Table

_POSTGRES_TYPES: tuple[tuple[type[Any], str], ...] = (
    (SmallInteger, "smallint"),
    (BigInteger, "bigint"),
    (Integer, "integer"),
    (Float, "double precision"),
    (Boolean, "boolean"),
    (JSON, "json"),
)

COPIED_FROM = 200
"""So many rows and more are copied."""


class Upsert:
    """``INSERT … ON CONFLICT`` of all columns of a table; keys must be unique within one `write`.

    Values go to the driver as they are: JSON as text.
    ``update`` maps columns to SQL over ``excluded`` and the table's own row; by default the new row replaces.
    """

    def __init__(self, table: Table, update: dict[str, str] | None = None) -> None:
        columns = [column.name for column in table.columns]
        keys = [column.name for column in table.primary_key.columns]
        if update is None:
            update = {name: f"excluded.{name}" for name in columns if name not in keys}
        into = f"INSERT INTO {table.name} ({', '.join(columns)})"
        changes = ", ".join(f"{name} = {value}" for name, value in update.items())
        conflict = f"ON CONFLICT ({', '.join(keys)}) DO " + (f"UPDATE SET {changes}" if changes else "NOTHING")
        arrays = ", ".join(f"%s::{_postgres_type(column.type)}[]" for column in table.columns)
        self._sqlite = f"{into} VALUES ({', '.join('?' for _ in columns)}) {conflict}"
        self._postgres = f"{into} SELECT * FROM unnest({arrays}) {conflict}"
        self._copy = f"COPY {table.name} ({', '.join(columns)}) FROM STDIN"

    def write(self, connection: Connection, rows: Sequence[tuple[Any, ...]]) -> None:
        """Writes ``rows``, each with a value for every column of the table, in the table's order."""
        if not rows:
            return
        if connection.dialect.name == "sqlite":
            connection.exec_driver_sql(self._sqlite, list(rows))
        else:
            connection.exec_driver_sql(self._postgres, tuple(list(column) for column in zip(*rows, strict=True)))

    def add(self, connection: Connection, rows: Sequence[tuple[Any, ...]]) -> None:
        """Writes ``rows`` of which it is known that none is there, which PostgreSQL does three times as fast."""
        if connection.dialect.name == "sqlite" or len(rows) < COPIED_FROM:
            self.write(connection, rows)
            return
        raw: Any = connection.connection.driver_connection
        with raw.cursor() as cursor, cursor.copy(self._copy) as copy:
            for row in rows:
                copy.write_row(row)


def _postgres_type(kind: object) -> str:
    return next((name for python, name in _POSTGRES_TYPES if isinstance(kind, python)), "text")
