"""MLflow's file store: a folder for each run, in it a file for each metric with lines ``timestamp value step``."""

from __future__ import annotations

import heapq
import re
from array import array
from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from rlvitals.formats.json_rows import kind_of
from rlvitals.formats.numbers import number
from rlvitals.formats.row import BadLine, Row

METRICS_MAX = 5_000
POINTS_MAX = 20_000_000
LINE_MAX = 1_000
"""Bytes of one line: three numbers."""
_RUN_NAME = re.compile(r"^run_name:\s*(.+?)\s*$", re.MULTILINE)

Point = tuple[int, float, str, int]
"""Step, value, metric, line."""


def is_store(folder: Path) -> bool:
    """Whether there is a run of MLflow in a folder, or in one of an experiment, or of all experiments."""
    return next(_runs(folder), None) is not None


def rows(folder: Path, run: str | None = None) -> Iterator[Row | BadLine]:
    """One run's rows: ``run`` is its id or name, else the one written last. ``line`` counts the rows.

    Where every point has step 0, none was given, and the rows are in the order of their writing. Raises ValueError
    where there is no run, or not that one.
    """
    chosen = _choose(folder, run)
    names = sorted(path for path in (chosen / "metrics").rglob("*") if path.is_file())
    if len(names) > METRICS_MAX:
        raise ValueError(f"{chosen}: at most {METRICS_MAX} metrics were expected, got {len(names)}")
    series: list[_Series] = []
    points = 0
    for path in names:
        one = _Series(path.relative_to(chosen / "metrics").as_posix())
        yield from one.read(path)
        points += len(one.steps)
        if points > POINTS_MAX:
            raise ValueError(f"{chosen}: at most {POINTS_MAX} points were expected")
        series.append(one)
    stepless = not any(any(one.steps) for one in series) and any(len(one.steps) > 1 for one in series)
    merged = heapq.merge(*(one.points(stepless) for one in series), key=itemgetter(0))
    for count, (step, group) in enumerate(groupby(merged, key=itemgetter(0)), 1):
        values = {name: value for _, value, name, _ in group}
        yield Row(line=count, step=None if stepless else step, values=values, kind=kind_of(values))


class _Series:
    """One metric's points: 16 bytes each."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.steps, self.values = array("q"), array("d")

    def read(self, path: Path) -> Iterator[BadLine]:
        """Takes the lines of its file; one that is none is told with its number and its metric."""
        with path.open("rb") as file:
            for at, raw in enumerate(iter(lambda: file.readline(LINE_MAX), b""), 1):
                words = raw.decode("utf-8", "replace").split()
                value = number(words[1]) if len(words) == 3 else None
                step = _whole(words[2]) if len(words) == 3 else None
                if value is None or step is None:
                    if words:
                        reason = f"timestamp, value and step of {self.name} were expected"
                        yield BadLine.of(at, reason, " ".join(words))
                    continue
                self.steps.append(step)
                self.values.append(value)

    def points(self, stepless: bool) -> Iterator[Point]:
        """By step; of several at one step the last one stands, as in MLflow."""
        order = range(len(self.steps))
        if stepless:
            return ((at, self.values[at], self.name, at) for at in order)
        by_step = sorted(order, key=self.steps.__getitem__)
        return ((self.steps[at], self.values[at], self.name, at) for at in by_step)


def _whole(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 16 else None


def _runs(folder: Path) -> Iterator[Path]:
    """Folders that hold a run: this one, or those one or two levels below it."""
    for pattern in ("metrics", "*/metrics", "*/*/metrics"):
        yield from (path.parent for path in sorted(folder.glob(pattern)) if (path.parent / "meta.yaml").is_file())


def _choose(folder: Path, run: str | None) -> Path:
    found = list(_runs(folder))
    if run is not None:
        found = [path for path in found if run in (path.name, _name(path))]
    if not found:
        raise ValueError(f"{folder}: a run of MLflow was expected" + (f" called {run!r}" if run else ""))
    return max(found, key=lambda path: max(p.stat().st_mtime_ns for p in (path, *(path / "metrics").rglob("*"))))


def _name(folder: Path) -> str:
    told = folder / "tags" / "mlflow.runName"
    if told.is_file():
        return told.read_text(encoding="utf-8", errors="replace").strip()
    found = _RUN_NAME.search((folder / "meta.yaml").read_text(encoding="utf-8", errors="replace"))
    return found[1].strip("'\"") if found is not None else ""
