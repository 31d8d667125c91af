"""Aim: its own repository of files; a run is found in it once `aim up` has indexed it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.trackers.contender import Opened, Place, Point

SHOWN = "Aim"
REQUIREMENTS = ("aim==3.29.1", "setuptools<81")
IMPORT = "from aim import Run"
DENSITY = 50
"""Points of a line in its explorer, unless somebody asks for more."""
READY = "/"
WITHOUT = {"outage": "its server only reads files"}


def serve(place: Place) -> list[str]:
    return ["{bin}/aim", "up", "--yes", "--repo", str(place.folder), "--port", str(place.port)]


def open_run(place: Place, run: str) -> Opened:
    from aim import Run  # type: ignore[import-not-found]

    opened = Run(repo=str(place.folder), system_tracking_interval=None, capture_terminal_logs=False)
    opened.name = run
    return Opened(lambda step, values: opened.track(dict(values), step=step), opened.close)


def steps(place: Place, run: str, name: str) -> list[int]:
    return [int(step) for metric in _metrics(place, run, name) for step in metric.values.sparse_list()[0]]


def chart(place: Place, run: str, name: str) -> list[Point]:
    """As the explorer's own endpoint samples."""
    points: list[Point] = []
    for metric in _metrics(place, run, name):
        found, (values, *_) = metric.data.sample(DENSITY).numpy()
        points += zip(found.tolist(), values.tolist(), strict=True)
    return points


def _metrics(place: Place, run: str, name: str) -> Iterator[Any]:
    from aim import Repo

    for opened in Repo(str(place.folder)).iter_runs():
        if opened.name == run:
            yield from (metric for metric in opened.metrics() if metric.name == name)
