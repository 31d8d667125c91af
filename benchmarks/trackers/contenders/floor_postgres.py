"""PostgreSQL by COPY, a commit a step; a chart is least and greatest of a thousand buckets."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from benchmarks.trackers.contender import Opened, Place, Point

SHOWN = "PostgreSQL COPY"
IMPORT = "import psycopg"
WITHOUT = {"outage": "its server is stopped for nobody here", "size": "of the database server"}
NEEDS_POSTGRES = True
BUCKETS = """
SELECT min(step), min(value), max(value) FILTER (WHERE value <> 'NaN'), bool_or(value = 'NaN') FROM bench_points
WHERE run = %s AND name = %s
GROUP BY step / (SELECT max(step) / 1000 + 1 FROM bench_points WHERE run = %s AND name = %s)
"""


def open_run(place: Place, run: str) -> Opened:
    connection = connect(place)

    def log(step: int, values: Mapping[str, float]) -> None:
        with connection.cursor().copy(f"COPY {table_of(place)} FROM STDIN") as copy:
            for name, value in values.items():
                copy.write_row((run, name, step, value))

    return Opened(log, connection.close)


def last_step(place: Place, run: str) -> int:
    row = _ask(place, "SELECT max(step) FROM bench_points WHERE run = %s", run)[0]
    return -1 if row[0] is None else int(row[0])


def steps(place: Place, run: str, name: str) -> list[int]:
    rows = _ask(place, "SELECT step FROM bench_points WHERE run = %s AND name = %s", run, name)
    return [step for (step,) in rows]


def chart(place: Place, run: str, name: str) -> list[Point]:
    rows = _ask(place, BUCKETS, run, name, run, name)
    drawn = [(step, value) for step, low, high, _ in rows for value in (low, high) if value is not None]
    return drawn + [(step, float("nan")) for step, _, _, nan in rows if nan]


def _ask(place: Place, query: str, *values: object) -> list[Any]:
    with connect(place) as connection:
        rows: list[Any] = connection.execute(query.replace("bench_points", table_of(place)), values).fetchall()
        return rows


def table_of(place: Place) -> str:
    """One for each folder, as the other contenders have."""
    return f"bench_{place.folder.name.lower().replace('-', '_')}"


def connect(place: Place) -> Any:
    import psycopg

    connection = psycopg.connect(os.environ["BENCH_POSTGRES_URL"], autocommit=True)
    made = f"CREATE TABLE IF NOT EXISTS {table_of(place)} (run text, name text, step bigint, value float8)"
    if connection.execute("SELECT to_regclass(%s)", (table_of(place),)).fetchone() == (None,):
        connection.execute("SELECT pg_advisory_lock(1)")
        connection.execute(made)
        connection.execute("SELECT pg_advisory_unlock(1)")
    return connection
