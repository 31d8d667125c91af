"""Ourselves: the client's defaults, to a service with all its rules on, on SQLite."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.trackers.contender import Opened, Place, Point, get

SHOWN = "RL Vitals"
IMPORT = "from rlvitals import init"
TAKES_REPORTS = True
READY = "/readyz"
STORE = "home/data"
MOST = 5_000


def environment(place: Place) -> Mapping[str, str]:
    return {"RLVITALS_HOME": str(place.folder / "home"), "RLVITALS_DATABASE_URL": ""}


def serve(place: Place) -> list[str]:
    return ["-m", "rlvitals.cli", "serve", "--port", str(place.port)]


def open_run(place: Place, run: str) -> Opened:
    import rlvitals as ours

    reporter = ours.init(run=run, url=place.url, spool=place.folder / "spool")
    return Opened(reporter.report, reporter.close)


def recover(place: Place) -> list[str]:
    """As its documentation says after a trainer was killed."""
    return ["-m", "rlvitals.cli", "sync", "--url", place.url, str(place.folder / "spool")]


def last_step(place: Place, run: str) -> int:
    found = [told["last_step"] for told in _ask(place, run, "metrics") if told["last_step"] is not None]
    return max(found, default=-1)


def steps(place: Place, run: str, name: str) -> list[int]:
    return list(_raw(place, run, name))


def chart(place: Place, run: str, name: str) -> list[Point]:
    (told,) = _ask(place, run, "series", metric=name)
    drawn = zip(told["step"], told["value"], strict=True)
    highs = zip(told["step"], told["high"], strict=False)
    marks = ((step, math.nan) for step in told["nan"])
    return [(step, value) for step, value in (*drawn, *highs, *marks) if value is not None]


def _raw(place: Place, run: str, name: str) -> Iterator[int]:
    """Page by page: never more than the API gives at once unthinned."""
    first = 0
    while True:
        span = {"from": first, "to": first + MOST - 1}
        (told,) = _ask(place, run, "series", metric=name, limit=MOST, **span)
        if not told["step"]:
            return
        yield from told["step"]
        first += MOST


def _ask(place: Place, run: str, what: str, **query: object) -> Any:
    token = json.loads((Path(place.folder) / "home" / "token.json").read_text())["token"]
    return get(f"{place.url}/api/v1/runs/{run}/{what}", query, {"Authorization": f"Bearer {token}"})
