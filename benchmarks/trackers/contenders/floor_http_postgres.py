"""The same least of our shape, with COPY into PostgreSQL for its writer."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.trackers.contender import Opened, Place, Point
from benchmarks.trackers.contenders import floor_http, floor_postgres

SHOWN = "list + POST + FastAPI + COPY"
IMPORT = floor_http.IMPORT
TAKES_REPORTS = True
NEEDS_POSTGRES = True
READY = floor_http.READY
WITHOUT = dict.fromkeys(("import", "size", "cost", "killed", "chart", "outage"), "as on SQLite")


def serve(place: Place) -> list[str]:
    return ["-m", "benchmarks.trackers.contenders.floor_http_postgres", str(place.folder), str(place.port)]


def open_run(place: Place, run: str) -> Opened:
    return floor_http.open_run(place, run)


def last_step(place: Place, run: str) -> int:
    return floor_postgres.last_step(place, run)


def steps(place: Place, run: str, name: str) -> list[int]:
    return floor_postgres.steps(place, run, name)


def chart(place: Place, run: str, name: str) -> list[Point]:
    return floor_postgres.chart(place, run, name)


def main() -> None:
    place = Place(folder=Path(sys.argv[1]))
    connection = floor_postgres.connect(place)

    def store(rows: Sequence[floor_http.Row]) -> None:
        with connection.cursor().copy(f"COPY {floor_postgres.table_of(place)} FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)

    floor_http.take_reports(int(sys.argv[2]), store)


if __name__ == "__main__":
    main()
