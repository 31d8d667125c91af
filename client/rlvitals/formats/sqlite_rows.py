"""Trackers that keep a SQLite file: MLflow's ``metrics`` table and Trackio's JSON rows."""

from __future__ import annotations

import json
import math
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from rlvitals.formats.json_rows import kind_of, row_of
from rlvitals.formats.row import BadLine, Row

MAGIC = b"SQLite format 3\0"


def rows(path: Path, run: str | None = None) -> Iterator[Row | BadLine]:
    """One run's rows: ``run`` is its id or name, else the one written last.

    Raises ValueError where the file has no table of metrics, no such run, or is damaged. A view is no table: it
    may compute anything.
    """
    try:
        yield from _rows(path, run)
    except sqlite3.Error as error:
        raise ValueError(f"{path}: a sound SQLite file was expected: {error}") from None


def _rows(path: Path, run: str | None) -> Iterator[Row | BadLine]:
    with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)) as database:
        database.execute("PRAGMA trusted_schema = OFF")
        kind = database.execute("SELECT type FROM sqlite_master WHERE name = 'metrics'").fetchone()
        if kind is None or kind[0] != "table":
            raise ValueError("a table `metrics` of MLflow or Trackio was expected")
        columns = {row[1] for row in database.execute("PRAGMA table_info(metrics)")}
        if {"key", "value", "run_uuid", "step"} <= columns:
            yield from _mlflow(database, run, flagged="is_nan" in columns)
        elif {"run_name", "step", "metrics"} <= columns:
            yield from _trackio(database, run)
        else:
            raise ValueError("a table `metrics` of MLflow or Trackio was expected")


def _mlflow(database: sqlite3.Connection, run: str | None, *, flagged: bool) -> Iterator[Row]:
    chosen = _chosen(database, "run_uuid", "timestamp", run)
    nan = "is_nan" if flagged else "0"
    found = database.execute(
        f"SELECT step, key, value, {nan} FROM metrics WHERE run_uuid = ? ORDER BY step, timestamp", (chosen,)
    )
    step, values, count = None, dict[str, float](), 0
    for number, key, value, is_nan in found:
        if number != step and values:
            count += 1
            yield Row(line=count, step=step, values=values, kind=kind_of(values))
            values = {}
        step = int(number)
        values[key] = math.nan if is_nan or value is None else _unbounded(float(value))
    if values:
        yield Row(line=count + 1, step=step, values=values, kind=kind_of(values))


def _unbounded(value: float) -> float:
    """MLflow writes the largest double for an infinity."""
    return math.copysign(math.inf, value) if abs(value) == sys.float_info.max else value


def _trackio(database: sqlite3.Connection, run: str | None) -> Iterator[Row | BadLine]:
    chosen = _chosen(database, "run_name", "timestamp", run)
    found = database.execute("SELECT step, metrics FROM metrics WHERE run_name = ? ORDER BY step", (chosen,))
    for count, (step, text) in enumerate(found, 1):
        try:
            record = json.loads(text)
        except ValueError as error:
            yield BadLine.of(count, f"a JSON object was expected: {error}", str(text))
            continue
        yield from row_of(count, {**record, "step": step})


def _chosen(database: sqlite3.Connection, column: str, time: str, run: str | None) -> str:
    if run is not None:
        known = database.execute(f"SELECT 1 FROM metrics WHERE {column} = ? LIMIT 1", (run,)).fetchone()
        if known is None:
            raise ValueError(f"no run called {run!r} in this file")
        return run
    newest = database.execute(f"SELECT {column} FROM metrics ORDER BY {time} DESC LIMIT 1").fetchone()
    if newest is None:
        raise ValueError("this file holds no metric yet")
    return str(newest[0])
