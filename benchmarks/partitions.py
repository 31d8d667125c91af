"""What large tables in parts cost and bring on PostgreSQL: the same work on one table each, and on parts.

CPU seconds are those of PostgreSQL's own processes, so that nothing else on the machine is measured.
BENCH_POINTS (1,000,000) bounds it; BENCH_PARTS (4,16,64) are tried.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path

import psycopg
from sqlalchemy import Connection, make_url, text

from rlvitals.contract.report import ReportBatch, RunInfo, StepReport
from rlvitals_monitor.database.partition import partition
from rlvitals_monitor.store import charts, latest, runs
from rlvitals_monitor.store.charts import Span
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.ingest import store_batch
from tests.chaos.postgres import running

METRICS, RUNS, STEPS = 50, 20, 100
NOW = datetime(2026, 11, 29, tzinfo=timezone.utc)
POINTS = int(os.environ.get("BENCH_POINTS", 1_000_000))
BATCHES = max(1, POINTS // (METRICS * RUNS * STEPS))
PARTS = [int(each) for each in os.environ.get("BENCH_PARTS", "4,16,64").split(",")]
TICK_S = 1 / os.sysconf("SC_CLK_TCK")
Work = Callable[[Connection], object]


def main() -> None:
    with running(2048) as postgres:
        forms = {0: _make(postgres.url, 0)} | {parts: _make(postgres.url, parts) for parts in PARTS}
        spent = {parts: _measure(store) for parts, store in forms.items()}
        _tell(spent)
        for parts in (0, PARTS[-1]):
            _explain(forms[parts], parts)
        for store in forms.values():
            store.close()


def _make(url: str, parts: int) -> Store:
    name = f"parts_{parts}"
    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    store = Store(make_url(url).set(database=name).render_as_string(hide_password=False))
    store.migrate()
    if parts:
        list(partition(store, parts))
    return store


def _measure(store: Store) -> dict[str, float]:
    """CPU milliseconds of PostgreSQL for each kind of work."""
    spent: dict[str, float] = {}
    filled = [_batch(run, place * STEPS, STEPS) for place in range(BATCHES) for run in range(RUNS)]
    spent["ingest of 5,000 values"] = _cpu_ms(store, [_stored(batch) for batch in filled], writes=True)
    small = [_batch(run, BATCHES * STEPS + place, 1) for place in range(50) for run in range(RUNS)]
    spent["ingest of 50 values"] = _cpu_ms(store, [_stored(batch) for batch in small], writes=True)
    with store.begin() as connection:
        connection.execute(text("ANALYZE"))
    spent["chart of one metric"] = _cpu_ms(store, [_chart(run, 1) for run in range(RUNS)] * 10)
    spent["charts of 50 metrics"] = _cpu_ms(store, [_chart(run, METRICS) for run in range(RUNS)])
    spent["newest value of 1,000 metrics"] = _cpu_ms(store, [_newest] * 10)
    return spent


def _batch(run: int, first: int, steps: int) -> ReportBatch:
    at = NOW.timestamp()
    told = (
        StepReport(seq=n + 1, step=n, time_s=at + n, values={f"m.{m}": 0.1 * m + n for m in range(METRICS)})
        for n in range(first, first + steps)
    )
    return ReportBatch(run=RunInfo(id=f"r{run}"), attempt="a", writer="main", steps=tuple(told))


def _stored(batch: ReportBatch) -> Work:
    return lambda connection: store_batch(connection, batch, NOW)


def _chart(run: int, metrics: int) -> Work:
    names = [f"m.{metric}" for metric in range(metrics)]
    whole = Span(first=None, last=None)

    def chart(connection: Connection) -> object:
        attempt = runs.find_attempt(connection, f"r{run}")
        return charts.read_series(connection, f"r{run}", attempt, names, whole, 1_000)

    return chart


def _newest(connection: Connection) -> object:
    return latest.latest_values(connection, NOW, within=timedelta(days=1))


def _cpu_ms(store: Store, works: list[Work], *, writes: bool = False) -> float:
    """Of PostgreSQL, a piece of work; each in a transaction of its own."""
    with _backend(store) as pid:
        began = _ticks(pid)
        for work in works:
            with store.begin() if writes else store.read() as connection:
                work(connection)
        return (_ticks(pid) - began) * TICK_S * 1e3 / len(works)


@contextmanager
def _backend(store: Store) -> Iterator[int]:
    """The one connection that the pool has, and gives to whoever asks in turn."""
    store.engine.dispose()
    with store.read() as connection:
        pid = int(connection.scalar(text("SELECT pg_backend_pid()")) or 0)
    yield pid


def _ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def _tell(spent: dict[int, dict[str, float]]) -> None:
    print(f"{BATCHES * METRICS * RUNS * STEPS:,} points; CPU of PostgreSQL, ms")
    print(f"{'':32}{'one table':>12}" + "".join(f"{f'{parts} parts':>18}" for parts in PARTS))
    for work, plain in spent[0].items():
        others = "".join(f"{spent[parts][work]:>10.2f} {spent[parts][work] / plain:>5.2f} ×" for parts in PARTS)
        print(f"{work:32}{plain:>12.2f}{others}")


def _explain(store: Store, parts: int) -> None:
    asked = "SELECT step, value, kind FROM points WHERE series = 7 AND step BETWEEN 100 AND 1099 ORDER BY step"
    with store.read() as connection:
        plan = [row[0] for row in connection.execute(text(f"EXPLAIN (ANALYZE, COSTS OFF, BUFFERS) {asked}"))]
    print(f"\n{parts or 'no'} parts: {asked}")
    print("\n".join(f"    {line}" for line in plan))


if __name__ == "__main__":
    main()
