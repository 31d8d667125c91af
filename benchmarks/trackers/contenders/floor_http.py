"""The least of our shape: a list, a POST each 0.25 s, one writer, narrow rows in SQLite. No checks, no rules."""

from __future__ import annotations

import json
import sqlite3
import sys
import threading
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks.trackers.contender import Opened, Place, Point
from benchmarks.trackers.contenders import floor_sqlite

SHOWN = "list + POST + FastAPI + SQLite"
IMPORT = "import json, urllib.request"
TAKES_REPORTS = True
READY = "/ready"
EVERY_S = 0.25
Row: TypeAlias = tuple[str, str, int, float]
WITHOUT = {"outage": "what is not taken is lost", "size": "FastAPI and what it needs"}


def serve(place: Place) -> list[str]:
    return ["-m", "benchmarks.trackers.contenders.floor_http", str(place.folder), str(place.port)]


def open_run(place: Place, run: str) -> Opened:
    waiting: list[tuple[int, Mapping[str, float]]] = []
    over = threading.Event()

    def send() -> None:
        while not over.wait(EVERY_S) or waiting:
            sent = waiting[:1_000]
            if sent:
                body = json.dumps([[run, step, values] for step, values in sent]).encode()
                urllib.request.urlopen(f"{place.url}/reports", body, timeout=60).close()
                del waiting[: len(sent)]

    thread = threading.Thread(target=send)
    thread.start()

    def close() -> None:
        over.set()
        thread.join()

    return Opened(lambda step, values: waiting.append((step, dict(values))), close)


def last_step(place: Place, run: str) -> int:
    return floor_sqlite.last_step(place, run)


def steps(place: Place, run: str, name: str) -> list[int]:
    return floor_sqlite.steps(place, run, name)


def chart(place: Place, run: str, name: str) -> list[Point]:
    return floor_sqlite.chart(place, run, name)


def main() -> None:
    folder = Path(sys.argv[1])
    database = sqlite3.connect(folder / "floor.db", check_same_thread=False, timeout=60)
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("CREATE TABLE IF NOT EXISTS points (run, name, step, value)")

    def store(rows: Sequence[Row]) -> None:
        database.executemany("INSERT INTO points VALUES (?, ?, ?, ?)", rows)
        database.commit()

    take_reports(int(sys.argv[2]), store)


def take_reports(port: int, store: Callable[[Sequence[Row]], None]) -> None:
    """Serves until it is killed; one at a time is stored."""
    import fastapi
    import uvicorn

    app, writing = fastapi.FastAPI(), threading.Lock()

    @app.get("/ready")
    def ready() -> str:
        return "ready"

    async def take(request: Any) -> fastapi.Response:
        reports: list[Any] = json.loads(await request.body())
        rows = [(run, name, step, value) for run, step, values in reports for name, value in values.items()]
        with writing:
            store(rows)
        return fastapi.Response()

    app.add_route("/reports", take, methods=["POST"])
    uvicorn.run(app, port=port, log_level="warning")


if __name__ == "__main__":
    main()
