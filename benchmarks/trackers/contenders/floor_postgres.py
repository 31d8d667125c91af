"""PostgreSQL by COPY, a commit a step; a chart is least and greatest of a thousand buckets."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
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
        store(connection, place, [(run, name, step, value) for name, value in values.items()])

    return Opened(log, connection.close)


def store(connection: Any, place: Place, rows: Sequence[tuple[str, str, int, float]]) -> None:
    with connection.cursor().copy(f"COPY {_table(place)} FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)


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
        rows: list[Any] = connection.execute(query.replace("bench_points", _table(place)), values).fetchall()
        return rows


def _table(place: Place) -> str:
    """One for each folder, as the other contenders have."""
    return f"bench_{place.folder.name.lower().replace('-', '_')}"


def connect(place: Place) -> Any:
    import psycopg

    connection = psycopg.connect(os.environ["BENCH_POSTGRES_URL"], autocommit=True)
    made = f"CREATE TABLE IF NOT EXISTS {_table(place)} (run text, name text, step bigint, value float8)"
    if connection.execute("SELECT to_regclass(%s)", (_table(place),)).fetchone() == (None,):
        connection.execute("SELECT pg_advisory_lock(1)")
        connection.execute(made)
        connection.execute("SELECT pg_advisory_unlock(1)")
    return connection
