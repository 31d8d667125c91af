"""What is measured: one function a cell, alike for every contender. Each starts afresh in a folder of its own."""

from __future__ import annotations

import sqlite3
import statistics
import subprocess
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from benchmarks.peers.environments import environment
from benchmarks.trackers.bench import ROOT, Bench, Failed, kill
from benchmarks.trackers.contender import Place
from benchmarks.trackers.work import SCALARS

TOLD = 1_000
"""Calls of the cost and before a kill -9."""
STEPS = 2_000
"""Steps of the ingest, over all its runs."""
RUNS = (1, 8, 32)
INGEST_S = 40.0
PACED, EVERY_S = 200, 0.05
MILLION, LONG_RUN_S, CHART_S = 1_000_000, 20.0, 40.0
OUTAGE_FROM_S, OUTAGE_S, OUTAGE_AFTER_S, OUTAGE_EVERY_S = 5.0, 20.0, 10.0, 0.01
SETTLE_S = 8.0
RUN = "run0"

Told = dict[str, Any]


def cost(bench: Bench) -> Told:
    with bench.place() as place, bench.serving(place, only_reports=True):
        return bench.ask(place, "cost", RUN)


def import_time(bench: Bench) -> Told:
    with bench.place() as place:
        return min((bench.ask(place, "import") for _ in range(3)), key=lambda told: float(told["import_s"]))


def size(bench: Bench) -> Told:
    """What pip put into its environment; ours are made for that: the client alone, and with the service."""
    if bench.of.REQUIREMENTS:
        return _size(bench.python)
    client = _size(environment("rlvitals-client", [str(ROOT)]))
    whole = _size(environment("rlvitals-server", [f"{ROOT}[server]"]))
    return {**client, "server_mb": whole["size_mb"], "server_packages": whole["packages"]}


def _size(python: Path) -> Told:
    (site,) = (python.parent.parent / "lib").glob("python*/site-packages")
    ours = ("pip", "setuptools", "pkg_resources", "_distutils_hack", "distutils-precedence", "__pycache__")
    kept = [path for path in site.iterdir() if not path.name.startswith(ours)]
    files = (file for path in kept for file in ([path] if path.is_file() else path.rglob("*")))
    held = sum(file.stat().st_size for file in files if file.is_file() and file.suffix != ".pyc")
    return {"size_mb": held / 1e6, "packages": sum(path.suffix == ".dist-info" for path in kept)}


def killed(bench: Bench) -> Told:
    """Steps found after a kill -9 of the trainer, and after what its documentation says to do then."""
    with bench.place() as place, bench.serving(place):
        try:
            bench.ask(place, "killed", RUN)
        except Failed as failed:
            if "ended with -9" not in str(failed) and "Killed" not in str(failed):
                print(f"  ({bench.name}: {str(failed)[-120:]!r})", flush=True)
        told = bench.ask(place, "count", RUN, TOLD, SETTLE_S)
        recover = getattr(bench.of, "recover", None)
        if recover is None:
            return {"found": told["found"]}
        bench.run(place, recover(place))
        after = bench.ask(place, "count", RUN, TOLD, SETTLE_S)
        return {"found": told["found"], "recovered": after["found"]}


def ingest(bench: Bench) -> Told:
    """Points a second, from the first call to the last step of the last run being readable."""
    return {f"runs{runs}": _ingest(bench, runs) for runs in RUNS}


def _ingest(bench: Bench, runs: int) -> Told:
    count = STEPS // runs
    with bench.place() as place, bench.serving(place) as server:
        fed = bench.start(place, "feed", runs, count)
        until = time.monotonic() + 120.0
        while sum(1 for _ in place.folder.glob("ready-*")) < runs:
            if fed.poll() is not None or time.monotonic() > until:
                return {"error": _words(bench, fed)}
            time.sleep(0.05)
        awaited = bench.start(place, "await", runs, count, INGEST_S)
        time.sleep(1.0)
        began = time.monotonic()
        (place.folder / "go").touch()
        seen = bench.answer(awaited)
        logged = _ended(bench, fed)
        kill(server)
        points = seen["found"] * SCALARS
        return {
            "points_s": points / (seen["seen"] - began),
            "logged_s": logged and logged - began,
            "lost": count * runs - seen["found"],
            "bytes_a_point": _stored(bench, place) / max(points, 1),
        }


def _stored(bench: Bench, place: Place) -> int:
    """Bytes of the store, once what SQLite keeps beside a database is in it."""
    folder = place.folder / getattr(bench.of, "STORE", ".")
    for path in folder.rglob("*.db"):
        with closing(sqlite3.connect(path)) as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file() and file.name != "server.log")


def _ended(bench: Bench, fed: subprocess.Popen[str]) -> float | None:
    """When the last trainer had closed its run; None for those that still log after all that time."""
    try:
        return float(bench.answer(fed, 5.0)["ended"])
    except Failed:
        return None


def _words(bench: Bench, process: subprocess.Popen[str]) -> str:
    try:
        return str(bench.answer(process, 1.0))
    except Failed as failed:
        return str(failed)


def latency(bench: Bench) -> Told:
    """Seconds from a call to its step being readable."""
    with bench.place() as place, bench.serving(place):
        limit_s = PACED * EVERY_S + 25.0
        watched = bench.start(place, "watch", RUN, PACED, limit_s)
        logged = bench.ask(place, "pace", RUN, PACED, EVERY_S)["logged"]
        seen = bench.answer(watched, limit_s + 10.0)["seen"]
    taken = sorted(at - since for at, since in zip(seen, logged, strict=False))
    if len(taken) < PACED:
        return {"error": f"{len(taken)} of {PACED} steps readable within {limit_s:g} s"}
    return {"p50_s": statistics.median(taken), "p99_s": taken[int(0.99 * PACED)]}


def chart(bench: Bench) -> Told:
    """A chart of one metric of a million steps, or as many as were logged within `LONG_RUN_S`."""
    with bench.place() as place:
        with bench.serving(place, only_reports=True):
            made = bench.ask(place, "long_run", RUN, MILLION, LONG_RUN_S)
            if bench.of.TAKES_REPORTS:
                bench.ask(place, "chart", RUN, made["steps"] - 1, CHART_S)
        with bench.serving(place):
            return made | bench.ask(place, "chart", RUN, made["steps"] - 1, CHART_S)


def outage(bench: Bench) -> Told:
    """Its server is killed and comes back after `OUTAGE_S`, while a trainer goes on."""
    with bench.place() as place:
        server = bench.serve(place)
        try:
            whole_s = OUTAGE_FROM_S + OUTAGE_S + OUTAGE_AFTER_S
            trainer = bench.start(place, "outage", RUN, OUTAGE_EVERY_S, whole_s)
            while not (place.folder / "going").exists() and trainer.poll() is None:
                time.sleep(0.05)
            time.sleep(OUTAGE_FROM_S)
            kill(server)
            time.sleep(OUTAGE_S)
            server = bench.serve(place)
            told = bench.answer(trainer)
            counted = bench.ask(place, "count", RUN, told["logged"], SETTLE_S)
        finally:
            kill(server)
    expected = int(whole_s / OUTAGE_EVERY_S)
    return {**told, "found": counted["found"], "lost": told["logged"] - counted["found"], "expected": expected}


CELLS: dict[str, Callable[[Bench], Told]] = {
    "import": import_time,
    "size": size,
    "cost": cost,
    "killed": killed,
    "latency": latency,
    "ingest": ingest,
    "chart": chart,
    "outage": outage,
}
