"""One database, SQLite or PostgreSQL: transactions, durability, schema version, epoch.

SQLite runs in WAL mode with ``synchronous=FULL``: a receipt promises that what it acknowledges survives a power
cut, and NORMAL syncs the log only at a checkpoint. It costs one disk sync for each batch, a few a second.
Writers take ``BEGIN IMMEDIATE``, one at a time: a deferred transaction that turns into a writer half-way fails at
once with "database is locked", whatever the busy timeout.
"""

from __future__ import annotations

import os
import secrets
import shutil
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, insert, make_url, select, text
from sqlalchemy.exc import InternalError, OperationalError

import rlvitals_migrations
from rlvitals.contract import codec
from rlvitals_monitor.errors import NewerSchema, StoreBusy
from rlvitals_monitor.store.tables import meta

BUSY_TIMEOUT_S = 10.0
POOL_SIZE = 20
POOL_OVERFLOW = 40
_NETWORK_TIMEOUTS: dict[str, Any] = {
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
    # The server's side.
    "options": "-c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3"
    " -c tcp_user_timeout=20000 -c idle_in_transaction_session_timeout=30000 -c lock_timeout=10000",
}
"""libpq's, for PostgreSQL: a network that was cut is noticed, a lock is waited for no longer than 10 s, and who
stands still within a transaction holds its locks no longer than 30 s."""
_MIGRATION_LOCK = 0x524C56
_WRITES = "rlvitals_writes"


class Store:
    """The database behind ``url``; thread-safe. Functions of this package take one of its connections.

    ``write_fault`` says why the last write failed, such as ``database or disk is full``; "" where it did not.
    """

    def __init__(self, url: str, *, busy_timeout_s: float = BUSY_TIMEOUT_S) -> None:
        self.engine = _engine(url, busy_timeout_s)
        self.is_sqlite = self.engine.dialect.name == "sqlite"
        self.write_fault = ""
        self._busy_timeout_s = busy_timeout_s
        self._writer = threading.Lock()

    @contextmanager
    def begin(self) -> Iterator[Connection]:
        """One write transaction: committed at the end, rolled back on any error. Not to be nested."""
        with self._turn(), self.engine.connect() as connection:
            connection = connection.execution_options(**{_WRITES: True})
            try:
                with connection.begin():
                    yield connection
            except (OperationalError, InternalError) as error:
                if not _passes(error.orig):
                    self.write_fault = str(error.orig).strip() or type(error).__name__
                raise
        self.write_fault = ""

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """One consistent look at the data; on SQLite it never waits for a writer."""
        with self.engine.connect() as connection, connection.begin():
            yield connection

    def migrate(self) -> None:
        """Brings the schema to the newest revision; safe when several processes start at once.

        Raises `NewerSchema`.
        """
        self.refuse_newer()
        with self.begin() as connection:
            if not self.is_sqlite:
                connection.execute(text("SET LOCAL lock_timeout = 0"))
                connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _MIGRATION_LOCK})
            rlvitals_migrations.upgrade(connection)
            if connection.scalar(select(meta.c.value).where(meta.c.key == "epoch")) is None:
                connection.execute(insert(meta).values(key="epoch", value=secrets.token_hex(8)))

    def refuse_newer(self) -> None:
        """Raises `NewerSchema` where the database has a schema that this code does not know."""
        with self.read() as connection:
            found = rlvitals_migrations.current(connection)
        if found is not None and not rlvitals_migrations.is_known(found):
            raise NewerSchema(found, rlvitals_migrations.head())

    @property
    def is_there(self) -> bool:
        """False for an SQLite file that nobody has made; a look into it would make one."""
        return not self.is_sqlite or os.path.exists(self.engine.url.database or "")

    def free_bytes(self) -> int | None:
        """On the disk that an SQLite file lies on; None for a database elsewhere."""
        path = self.engine.url.database
        return shutil.disk_usage(Path(path).parent).free if self.is_sqlite and path else None

    def is_current(self) -> bool:
        """True when the schema is the one that this code was written for."""
        with self.read() as connection:
            return rlvitals_migrations.current(connection) == rlvitals_migrations.head()

    def epoch(self, connection: Connection) -> str:
        """Changes when the data were restored from a backup, so that clients send again what they still keep."""
        value = connection.scalar(select(meta.c.value).where(meta.c.key == "epoch"))
        if value is None:
            raise LookupError("the store has no epoch: run `rlvitals db migrate`")
        return str(value)

    def close(self) -> None:
        self.engine.dispose()

    @contextmanager
    def _turn(self) -> Iterator[None]:
        if not self.is_sqlite:
            yield
            return
        if not self._writer.acquire(timeout=self._busy_timeout_s):
            raise StoreBusy(self._busy_timeout_s)
        try:
            yield
        finally:
            self._writer.release()


def _passes(error: BaseException | None) -> bool:
    """Two that stood in each other's way: the next attempt may succeed, and nothing ails the database."""
    state = getattr(error, "sqlstate", None) or ""
    return state[:2] in ("40", "55") or (not state and "locked" in str(error))


def _engine(url: str, busy_timeout_s: float) -> Engine:
    address = make_url(url)
    if address.get_backend_name() == "postgresql":
        address = address.set(drivername="postgresql+psycopg")
    engine = create_engine(
        address,
        connect_args=network_timeouts(address),
        pool_size=POOL_SIZE,
        max_overflow=POOL_OVERFLOW,
        pool_pre_ping=address.get_backend_name() != "sqlite",
        json_serializer=lambda value: codec.dumps(value).decode("ascii"),
        json_deserializer=codec.loads,
    )
    if address.get_backend_name() == "sqlite":
        _tune_sqlite(engine, busy_timeout_s)
    return engine


def network_timeouts(address: URL) -> dict[str, Any]:
    """What the address does not say itself; nothing for SQLite."""
    if address.get_backend_name() != "postgresql":
        return {}
    return {name: value for name, value in _NETWORK_TIMEOUTS.items() if name not in address.query}


def _tune_sqlite(engine: Engine, busy_timeout_s: float) -> None:
    @event.listens_for(engine, "connect")
    def _connected(connection: sqlite3.Connection, _record: object) -> None:
        # The driver's own transaction handling would begin late and deferred.
        connection.isolation_level = None
        for pragma in (
            f"busy_timeout={round(busy_timeout_s * 1000)}",
            "journal_mode=WAL",
            "synchronous=FULL",
            "foreign_keys=ON",
            "temp_store=MEMORY",
            "cache_size=-16384",
        ):
            connection.execute(f"PRAGMA {pragma}").close()

    @event.listens_for(engine, "begin")
    def _began(connection: Connection) -> None:
        writes = connection.get_execution_options().get(_WRITES, False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
