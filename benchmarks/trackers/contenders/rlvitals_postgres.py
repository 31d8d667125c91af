"""Ourselves on PostgreSQL, a database for each folder; the client is the same."""

from __future__ import annotations

import os
from collections.abc import Mapping
from urllib.parse import urlsplit, urlunsplit

from benchmarks.trackers.contender import Opened, Place, Point
from benchmarks.trackers.contenders import rlvitals

SHOWN = "RL Vitals on PostgreSQL"
IMPORT = rlvitals.IMPORT
TAKES_REPORTS = True
NEEDS_POSTGRES = True
READY = rlvitals.READY
STORE = rlvitals.STORE
WITHOUT = dict.fromkeys(("import", "size", "cost", "killed", "chart", "outage"), "as on SQLite")
CREATE = """
import sys, psycopg
psycopg.connect(sys.argv[1], autocommit=True).execute(f'CREATE DATABASE "{sys.argv[2]}"')
"""


def environment(place: Place) -> Mapping[str, str]:
    server = urlsplit(os.environ["BENCH_POSTGRES_URL"])
    database = urlunsplit(server._replace(path=f"/{place.folder.name}"))
    return {**rlvitals.environment(place), "RLVITALS_DATABASE_URL": database}


def prepare(place: Place) -> list[str]:
    return ["-c", CREATE, os.environ["BENCH_POSTGRES_URL"], place.folder.name]


def serve(place: Place) -> list[str]:
    return rlvitals.serve(place)


def open_run(place: Place, run: str) -> Opened:
    return rlvitals.open_run(place, run)


def last_step(place: Place, run: str) -> int:
    return rlvitals.last_step(place, run)


def steps(place: Place, run: str, name: str) -> list[int]:
    return rlvitals.steps(place, run, name)


def chart(place: Place, run: str, name: str) -> list[Point]:
    return rlvitals.chart(place, run, name)
