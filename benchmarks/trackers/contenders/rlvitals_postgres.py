"""Ourselves on PostgreSQL, a database for each folder; the client is the same."""

from __future__ import annotations

import os
from collections.abc import Mapping
from urllib.parse import urlsplit, urlunsplit

from benchmarks.trackers.contender import Place
from benchmarks.trackers.contenders import rlvitals
from benchmarks.trackers.contenders.rlvitals import chart, last_step, open_run, serve, steps

__all__ = ["chart", "last_step", "open_run", "serve", "steps"]

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
