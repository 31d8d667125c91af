"""The least that keeps a number: a line of JSON, written at once."""

from __future__ import annotations

import json
import os

from benchmarks.trackers.contender import Opened, Place, Point

SHOWN = "json.dumps + os.write"
IMPORT = "import json"
WITHOUT = {"outage": "no server", "size": "of Python itself"}


def open_run(place: Place, run: str) -> Opened:
    descriptor = os.open(place.folder / f"{run}.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    return Opened(
        lambda step, values: os.write(descriptor, (json.dumps({"step": step, **values}) + "\n").encode()),
        lambda: os.close(descriptor),
    )


def steps(place: Place, run: str, name: str) -> list[int]:
    return [step for step, _ in chart(place, run, name)]


def chart(place: Place, run: str, name: str) -> list[Point]:
    path = place.folder / f"{run}.jsonl"
    if not path.exists():
        return []
    lines = path.read_bytes().rpartition(b"\n")[0].splitlines()
    return [(told["step"], told[name]) for told in map(json.loads, lines)]
