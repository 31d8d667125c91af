"""Runs in a contender's own environment: ``python contenders.py NAME TASK FOLDER``, answers with one line of JSON.

Each contender is used as its documentation says, with its defaults but for what would leave the machine. `open_`
gives ``log(step, values)``, a ``close`` and a ``count`` of the steps that a reader finds afterwards.
"""

from __future__ import annotations

import json
import math
import os
import signal
import sqlite3
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

SCALARS, CALLS, KILLED_AFTER = 50, 1_000, 1_000
VALUES = {f"family_{i % 7}/metric_{i}": 0.1234567 * i + 1e-5 for i in range(SCALARS)}
FIRST = next(iter(VALUES))


class Opened(NamedTuple):
    log: Callable[[int, Mapping[str, float]], object]
    close: Callable[[], object]


def floor(folder: Path) -> Opened:
    descriptor = os.open(folder / "floor.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    return Opened(
        lambda step, values: os.write(descriptor, (json.dumps({"step": step, **values}) + "\n").encode()),
        lambda: os.close(descriptor),
    )


def floor_count(folder: Path) -> int:
    return len((folder / "floor.jsonl").read_bytes().splitlines())


def sqlite(folder: Path) -> Opened:
    database = sqlite3.connect(folder / "floor.db")
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("CREATE TABLE points (name, step, value)")

    def log(step: int, values: Mapping[str, float]) -> None:
        database.executemany("INSERT INTO points VALUES (?, ?, ?)", [(n, step, v) for n, v in values.items()])
        database.commit()

    return Opened(log, database.close)


def sqlite_count(folder: Path) -> int:
    with sqlite3.connect(folder / "floor.db") as database:
        return int(database.execute("SELECT count(DISTINCT step) FROM points").fetchone()[0])


def postgres(_folder: Path) -> Opened:
    import psycopg

    connection = psycopg.connect(os.environ["BENCH_POSTGRES_URL"], autocommit=True)
    connection.execute("CREATE TABLE IF NOT EXISTS bench_points (name text, step bigint, value float8)")
    connection.execute("TRUNCATE bench_points")

    def log(step: int, values: Mapping[str, float]) -> None:
        with connection.cursor().copy("COPY bench_points FROM STDIN") as copy:
            for name, value in values.items():
                copy.write_row((name, step, value))

    return Opened(log, connection.close)


def postgres_count(_folder: Path) -> int:
    import psycopg

    with psycopg.connect(os.environ["BENCH_POSTGRES_URL"]) as connection:
        row = connection.execute("SELECT count(DISTINCT step) FROM bench_points").fetchone()
    return int(row[0]) if row else 0


def rlvitals(folder: Path) -> Opened:
    import rlvitals as ours

    run = ours.init(run="bench", spool=folder / "spool", mode="offline")
    return Opened(run.report, run.close)


def rlvitals_count(folder: Path) -> int:
    from rlvitals.contract.report import StepReport
    from rlvitals.follow import Follower
    from rlvitals.spool import journals

    found = 0
    for journal in journals(folder / "spool"):
        follower = Follower(journal)
        while items := follower.read(1_000):
            found += sum(isinstance(item.record, StepReport) for item in items)
    return found


def tensorboard(folder: Path) -> Opened:
    from tensorboard.summary import Writer  # type: ignore[import-not-found]

    writer = Writer(str(folder))

    def log(step: int, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            writer.add_scalar(name, value, step)

    return Opened(log, writer.close)


def tensorboard_count(folder: Path) -> int:
    from tensorboard.backend.event_processing.event_accumulator import (  # type: ignore[import-not-found]
        EventAccumulator,
    )

    events = EventAccumulator(str(folder), size_guidance={"tensors": 0, "scalars": 0})
    events.Reload()
    tags = events.Tags()
    return len(events.Tensors(FIRST) if FIRST in tags["tensors"] else events.Scalars(FIRST))


def mlflow(folder: Path) -> Opened:
    import mlflow as them  # type: ignore[import-not-found]

    them.set_tracking_uri(f"sqlite:///{folder / 'mlflow.db'}")
    them.start_run()
    return Opened(lambda step, values: them.log_metrics(dict(values), step=step), them.end_run)


def mlflow_count(folder: Path) -> int:
    with sqlite3.connect(folder / "mlflow.db") as database:
        return int(database.execute("SELECT count(DISTINCT step) FROM metrics").fetchone()[0])


def trackio(_folder: Path) -> Opened:
    import trackio as them  # type: ignore[import-not-found]

    them.init(project="bench", name="bench", embed=False)
    return Opened(lambda step, values: them.log(dict(values), step=step), them.finish)


def trackio_count(folder: Path) -> int:
    path = next(folder.rglob("bench*.db"), None)
    if path is None:
        return 0
    with sqlite3.connect(path) as database:
        return int(database.execute("SELECT count(DISTINCT step) FROM metrics").fetchone()[0])


def aim(folder: Path) -> Opened:
    from aim import Run  # type: ignore[import-not-found]

    run = Run(repo=str(folder), system_tracking_interval=None, capture_terminal_logs=False)
    return Opened(lambda step, values: run.track(dict(values), step=step), run.close)


def aim_count(folder: Path) -> int:
    from aim import Repo  # type: ignore[import-not-found]

    return max((len(metric.values.sparse_list()[0]) for run in Repo(str(folder)).iter_runs() for metric in
                run.metrics() if metric.name == FIRST), default=0)  # fmt: skip


def wandb(folder: Path) -> Opened:
    import wandb as them  # type: ignore[import-not-found]

    run = them.init(project="bench", mode="offline", dir=str(folder), settings=them.Settings(silent=True))
    return Opened(lambda step, values: run.log(dict(values), step=step), run.finish)


def wandb_count(folder: Path) -> int:
    """Read by our own reader of its files, so in our environment."""
    from rlvitals.formats.log import Log
    from rlvitals.formats.row import Row

    return sum(isinstance(row, Row) for row in Log.of(next(folder.rglob("*.wandb"))).rows())


def swanlab(folder: Path) -> Opened:
    import swanlab as them  # type: ignore[import-not-found]

    them.init(project="bench", mode="local", logdir=str(folder))
    return Opened(lambda step, values: them.log(dict(values), step=step), them.finish)


IMPORTS = {"floor": "json", "sqlite": "sqlite3", "postgres": "psycopg", "tensorboard": "tensorboard.summary"}


def cost(name: str, folder: Path) -> dict[str, Any]:
    opened = globals()[name](folder)
    taken = []
    for step in range(CALLS):
        _spin(0.001)
        began = time.perf_counter_ns()
        opened.log(step, VALUES)
        taken.append((time.perf_counter_ns() - began) / 1000)
    taken.sort()
    return {"median": statistics.median(taken), "p99": taken[int(CALLS * 0.99)]}


def import_time(name: str, _folder: Path) -> dict[str, Any]:
    module = IMPORTS.get(name, name)
    began = time.perf_counter()
    __import__(module)
    return {"import_s": time.perf_counter() - began}


def killed(name: str, folder: Path) -> dict[str, Any]:
    opened = globals()[name](folder)
    for step in range(KILLED_AFTER):
        opened.log(step, VALUES)
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("unreachable")


def count(name: str, folder: Path) -> dict[str, Any]:
    """Nothing is told of a contender whose files we cannot read."""
    counter = globals().get(f"{name}_count")
    return {} if counter is None else {"found": counter(folder)}


def _spin(seconds: float) -> None:
    """A training loop's own Python between two calls."""
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        math.fsum(float(i) for i in range(200))


TASKS = {"cost": cost, "import": import_time, "killed": killed, "count": count}


def main() -> None:
    name, task, folder = sys.argv[1:]
    told = TASKS[task](name, Path(folder))
    os.write(1, ("\nRESULT " + json.dumps(told) + "\n").encode())
    os._exit(0)


if __name__ == "__main__":
    main()
