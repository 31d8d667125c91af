"""The same least of our shape, with COPY into PostgreSQL for its writer."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

from benchmarks.trackers.contender import Place
from benchmarks.trackers.contenders import floor_http, floor_postgres
from benchmarks.trackers.contenders.floor_http import open_run
from benchmarks.trackers.contenders.floor_postgres import chart, last_step, steps

__all__ = ["chart", "last_step", "open_run", "steps"]

SHOWN = "list + POST + FastAPI + COPY"
IMPORT = floor_http.IMPORT
TAKES_REPORTS = True
NEEDS_POSTGRES = True
READY = floor_http.READY
WITHOUT = dict.fromkeys(("import", "size", "cost", "killed", "chart", "outage"), "as on SQLite")


def serve(place: Place) -> list[str]:
    return ["-m", "benchmarks.trackers.contenders.floor_http_postgres", str(place.folder), str(place.port)]


def main() -> None:
    place = Place(folder=Path(sys.argv[1]))
    connection = floor_postgres.connect(place)
    floor_http.take_reports(int(sys.argv[2]), partial(floor_postgres.store, connection, place))


if __name__ == "__main__":
    main()
