"""Ourselves: the client's defaults, to a service with all its rules on, on SQLite."""

from __future__ import annotations

import json
import math
import time
import urllib.request
from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.trackers.contender import Opened, Place, Point, get

SHOWN = "RL Vitals"
IMPORT = "from rlvitals import init"
TAKES_REPORTS = True
READY = "/readyz"
STORE = "home/data"
MOST = 5_000
BATCH = 1_000
FLUSH_S = 60.0


def environment(place: Place) -> Mapping[str, str]:
    return {"RLVITALS_HOME": str(place.folder / "home"), "RLVITALS_DATABASE_URL": ""}


def serve(place: Place) -> list[str]:
    return ["-m", "rlvitals.cli", "serve", "--port", str(place.port)]


def open_run(place: Place, run: str) -> Opened:
    import rlvitals as ours

    reporter = ours.init(run=run, url=place.url, spool=place.folder / "spool")

    def close() -> None:
        """Waits until all is stored, as others do; by itself it leaves that to `rlvitals sync` after 2 s."""
        reporter.flush(FLUSH_S)
        reporter.close()

    return Opened(reporter.report, close)


def open_curve(place: Place, run: str) -> Opened:
    """By the API: the client sends a hundred steps each quarter of a second, and no run has more."""
    from rlvitals.contract.report import ReportBatch, RunInfo, StepReport
    from rlvitals.contract.wire import to_wire
    from rlvitals.transport import REPORTS_PATH, pack

    waiting: list[StepReport] = []
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip", **_token(place)}

    def send() -> None:
        body = pack(to_wire(ReportBatch(run=RunInfo(id=run), attempt="a", steps=tuple(waiting))))
        urllib.request.urlopen(urllib.request.Request(f"{place.url}{REPORTS_PATH}", body, headers)).close()
        waiting.clear()

    def log(step: int, values: Mapping[str, float]) -> None:
        waiting.append(StepReport(seq=step + 1, step=step, time_s=time.time(), values=values))
        if len(waiting) == BATCH:
            send()

    return Opened(log, lambda: send() if waiting else None)


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
    return get(f"{place.url}/api/v1/runs/{run}/{what}", query, _token(place))


def _token(place: Place) -> dict[str, str]:
    told = json.loads((place.folder / "home" / "token.json").read_text())
    return {"Authorization": f"Bearer {told['token']}"}
