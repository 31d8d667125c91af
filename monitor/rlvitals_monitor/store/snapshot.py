"""A store at one moment, in a file, while it is in use; and whether it is in use."""

from __future__ import annotations

import secrets
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from sqlalchemy import Connection, delete, text, update

from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.tables import METADATA, entries, links, meta, sessions


def vacuum_into(store: Store, file: Path) -> None:
    """SQLite's own: all that was committed when it began, without what is free. Writers do not wait for it."""
    with closing(store.engine.raw_connection()) as raw:
        raw.cursor().execute("VACUUM INTO ?", (str(file),))


@contextmanager
def frozen(store: Store) -> Iterator[Connection]:
    """A connection that sees one state, whatever is committed meanwhile; nobody waits for it."""
    level = "REPEATABLE READ"
    if store.is_sqlite:
        with store.read() as connection:
            yield connection
        return
    with store.engine.connect().execution_options(isolation_level=level) as connection, connection.begin():
        yield connection


def new_epoch(connection: Connection) -> str:
    """Tells every client to send again what it still keeps and the store may have lost."""
    epoch = secrets.token_hex(8)
    connection.execute(update(meta).where(meta.c.key == "epoch").values(value=epoch))
    return epoch


def forget_who_is_in(connection: Connection) -> None:
    """Sessions, and links that work once: whether they were ended or used in the meantime, nobody knows here."""
    for table in (sessions, entries, links):
        connection.execute(delete(table))


LEAVING_S = 3.0
"""How long PostgreSQL may take to part from a program that has hung up."""


def is_in_use(store: Store) -> bool:
    """True while another program has the database open."""
    store.close()
    if store.is_sqlite:
        return _is_locked(store)
    others = text(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        " AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
    )
    until = time.monotonic() + LEAVING_S
    while time.monotonic() < until:
        with store.read() as connection:  # a new one each time: within a transaction the same is told again
            if not connection.scalar(others):
                return False
        time.sleep(0.05)
    return True


def _is_locked(store: Store) -> bool:
    """To leave the write-ahead log a connection needs the file for itself; the next one to open it goes back."""
    with closing(store.engine.raw_connection()) as raw:
        cursor = raw.cursor()
        cursor.execute("PRAGMA busy_timeout=0")
        try:
            cursor.execute("PRAGMA journal_mode=DELETE")
            return str((cursor.fetchone() or ("",))[0]).lower() != "delete"
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                return True
            raise
        finally:
            raw.invalidate()


def size(store: Store) -> int:
    """Bytes on disk, the write-ahead log not counted."""
    with store.read() as connection:
        if store.is_sqlite:
            pages = connection.exec_driver_sql("PRAGMA page_count").scalar() or 0
            return int(pages) * int(connection.exec_driver_sql("PRAGMA page_size").scalar() or 0)
        return int(connection.scalar(text("SELECT pg_database_size(current_database())")) or 0)


def vacuum(store: Store) -> tuple[int, int]:
    """Gives the space of what was removed back to the disk; (bytes before, bytes after).

    On SQLite reports wait meanwhile, and as much again is needed on the disk. On PostgreSQL nobody waits: its
    space is used again, and not given back to the disk.
    """
    before = size(store)
    if store.is_sqlite:
        with closing(store.engine.raw_connection()) as raw:
            for statement in ("VACUUM", "ANALYZE", "PRAGMA wal_checkpoint(TRUNCATE)"):
                raw.cursor().execute(statement)
    else:
        with store.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            ours = ", ".join(f'"{table.name}"' for table in METADATA.sorted_tables)
            connection.execute(text(f"VACUUM (ANALYZE) {ours}"))
    return before, size(store)
