"""What is in the service's database, read past the service."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

_COUNTS = {
    "attempts": "SELECT count(*) FROM attempts WHERE run = ?",
    "steps": "SELECT count(*) FROM steps JOIN attempts ON number = attempt WHERE run = ?",
    "texts": "SELECT count(*) FROM texts JOIN attempts ON attempts.number = attempt WHERE run = ?",
}
_ROLLED_UP = """
SELECT width, sum(count) FROM rollups
JOIN series ON series.number = series JOIN attempts ON attempts.number = attempt
WHERE run = ? AND metric = ? GROUP BY width
"""


def url(folder: Path) -> str:
    """Of the database of the service in ``folder``, for SQLAlchemy."""
    return f"sqlite:///{_file(folder)}"


def count(folder: Path, table: str, run: str) -> int:
    return int(_ask(folder, _COUNTS[table], run)[0][0])


def rolled_up(folder: Path, run: str, metric: str) -> dict[int, int]:
    """Points that each width of rollups has counted; one taken twice is counted twice."""
    return dict(_ask(folder, _ROLLED_UP, run, metric))


def _ask(folder: Path, query: str, *arguments: str) -> list[Any]:
    with closing(sqlite3.connect(f"file:{_file(folder)}?mode=ro", uri=True)) as connection:
        return connection.execute(query, arguments).fetchall()


def _file(folder: Path) -> Path:
    return folder / "data" / "rlvitals.db"
