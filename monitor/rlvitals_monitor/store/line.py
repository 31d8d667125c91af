"""How processes on one database tell each other that something of a run changed, and what they took of a quota.

PostgreSQL: LISTEN and NOTIFY on a connection beside the pool. A notification is sent by itself, never within an
ingest: NOTIFY takes a lock of the whole server at its transaction's commit. SQLite has nothing of the kind, so
there it is only seen that some other connection wrote.
"""

from __future__ import annotations

import re
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import NamedTuple, Protocol

import orjson
from sqlalchemy import URL

from rlvitals_monitor.store.engine import Store, network_timeouts
from rlvitals_monitor.store.names import RUN_ID

CHANNEL = "rlvitals"
PAYLOAD_BYTES_MAX = 7_500
"""PostgreSQL takes less than 8,000."""
LOOK_S = 0.5
"""How often SQLite is asked whether somebody wrote."""
SPENT_MAX = 200
"""Quotas in one payload: a name and a cost take less than 37 bytes."""
COST_MAX = 1 << 40
_ORIGIN = re.compile(r"[0-9a-f]{1,32}")
_QUOTA = re.compile(r"[a-z][0-9a-f]{16}")
_NOTHING: Mapping[str, int] = {}


class Told(NamedTuple):
    """``runs`` changed, and of quotas ``spent`` was taken; neither: something changed, and nobody knows what."""

    origin: str
    runs: tuple[str, ...] = ()
    spent: Mapping[str, int] = _NOTHING


class Line(Protocol):
    """One connection. Every method raises the driver's own error when it is lost."""

    def tell(self, origin: str, runs: Iterable[str], spent: Mapping[str, int] = _NOTHING) -> None:
        """Tells all who listen, oneself included."""

    def hear(self, timeout_s: float) -> list[Told]:
        """What was told, [] where nothing was for ``timeout_s``."""

    def close(self) -> None: ...


def open_line(store: Store) -> Line:
    """Raises the driver's error where there is no way to the database."""
    return SqliteLine(store) if store.is_sqlite else PostgresLine(store.engine.url)


class PostgresLine:
    def __init__(self, url: URL) -> None:
        import psycopg

        address = url.set(drivername="postgresql").render_as_string(hide_password=False)
        self._connection = psycopg.connect(address, autocommit=True, **network_timeouts(url))
        self._listens = False

    def tell(self, origin: str, runs: Iterable[str], spent: Mapping[str, int] = _NOTHING) -> None:
        for payload in (*pack(origin, runs), *pack_spent(origin, spent)):
            self._connection.execute("SELECT pg_notify(%s, %s)", (CHANNEL, payload))

    def hear(self, timeout_s: float) -> list[Told]:
        if not self._listens:
            self._connection.execute(f"LISTEN {CHANNEL}")
            self._listens = True
        told = (unpack(n.payload) for n in self._connection.notifies(timeout=timeout_s, stop_after=1))
        return [heard for heard in told if heard is not None]

    def close(self) -> None:
        self._connection.close()


class SqliteLine:
    def __init__(self, store: Store) -> None:
        path = store.engine.url.database
        assert path is not None
        self._connection = sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=ro", uri=True)
        self._version = self._read()
        self._pause = threading.Event()

    def tell(self, origin: str, runs: Iterable[str], spent: Mapping[str, int] = _NOTHING) -> None:
        """What was written is seen by itself. One process alone reports to SQLite."""

    def hear(self, timeout_s: float) -> list[Told]:
        self._pause.wait(min(timeout_s, LOOK_S))
        before, self._version = self._version, self._read()
        return [] if self._version == before else [Told("")]

    def close(self) -> None:
        self._pause.set()
        self._connection.close()

    def _read(self) -> int:
        with closing(self._connection.execute("PRAGMA data_version")) as rows:
            return int(rows.fetchone()[0])


def pack(origin: str, runs: Iterable[str]) -> Iterator[str]:
    """As many payloads as it takes, each within what PostgreSQL carries."""
    packed: list[str] = []
    size = len(origin) + 8
    for run in runs:
        if packed and size + len(run) + 3 > PAYLOAD_BYTES_MAX:
            yield orjson.dumps([origin, *packed]).decode()
            packed, size = [], len(origin) + 8
        packed.append(run)
        size += len(run) + 3
    if packed:
        yield orjson.dumps([origin, *packed]).decode()


def pack_spent(origin: str, spent: Mapping[str, int]) -> Iterator[str]:
    """As `pack`, for what was taken of quotas."""
    items = list(spent.items())
    for first in range(0, len(items), SPENT_MAX):
        yield orjson.dumps([origin, dict(items[first : first + SPENT_MAX])]).decode()


def unpack(payload: str) -> Told | None:
    """None for what is not ours: whoever may log in to the database may notify."""
    try:
        words = orjson.loads(payload)
    except ValueError:
        return None
    if not isinstance(words, list) or not words or not isinstance(words[0], str):
        return None
    origin, *told = words
    if not _ORIGIN.fullmatch(origin):
        return None
    if len(told) == 1 and isinstance(told[0], dict):
        return Told(origin, spent=told[0]) if all(map(_is_cost, told[0].items())) else None
    if not all(isinstance(run, str) and (run == "" or RUN_ID.fullmatch(run)) for run in told):
        return None
    return Told(origin, tuple(told))


def _is_cost(item: tuple[str, object]) -> bool:
    name, cost = item
    return bool(_QUOTA.fullmatch(name)) and type(cost) is int and 0 <= cost <= COST_MAX
