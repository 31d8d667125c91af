"""SQLite by ``executemany``, a commit a step, in WAL mode; a chart is least and greatest of a thousand buckets."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

from benchmarks.trackers.contender import Opened, Place, Point

SHOWN = "SQLite executemany"
IMPORT = "import sqlite3"
WITHOUT = {"outage": "no server", "size": "of Python itself"}
NAN = "a NaN is NULL in SQLite"
BUCKETS = """
SELECT step, min(value), max(value) FROM points WHERE run = ? AND name = ?
GROUP BY step / (SELECT max(step) / 1000 + 1 FROM points WHERE run = ? AND name = ?)
"""


def open_run(place: Place, run: str) -> Opened:
    database = _connect(place)

    def log(step: int, values: Mapping[str, float]) -> None:
        rows = [(run, name, step, value) for name, value in values.items()]
        database.executemany("INSERT INTO points VALUES (?, ?, ?, ?)", rows)
        database.commit()

    return Opened(log, database.close)


def last_step(place: Place, run: str) -> int:
    row = _connect(place).execute("SELECT max(step) FROM points WHERE run = ?", (run,)).fetchone()
    return -1 if row[0] is None else int(row[0])


def steps(place: Place, run: str, name: str) -> list[int]:
    rows = _connect(place).execute("SELECT step FROM points WHERE run = ? AND name = ?", (run, name))
    return [step for (step,) in rows]


def chart(place: Place, run: str, name: str) -> list[Point]:
    rows = _connect(place).execute(BUCKETS, (run, name, run, name)).fetchall()
    return [(step, value) for step, low, high in rows for value in (low, high) if value is not None]


def _connect(place: Place) -> sqlite3.Connection:
    database = sqlite3.connect(place.folder / "floor.db", timeout=60)
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("CREATE TABLE IF NOT EXISTS points (run, name, step, value)")
    return database
