"""1, 2 and 4 collectors on one PostgreSQL, 1,000 runs: reports a second, lock waits, memory, a growing store.

Ratios: everything (trainers, collectors, PostgreSQL) shares this machine's cores. BENCH_COLLECTORS_SAMPLES is how
far the store is grown (default 1,000,000; 10,000,000 for the full one), BENCH_COLLECTORS_MINUTES for how long they
all then go on at their own pace while the collectors' memory is read (default 0; 30 for the full one).
"""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from sqlalchemy import text

from benchmarks.load import METRICS, Loaded, batches, load
from rlvitals_monitor.store import tokens
from rlvitals_monitor.store.engine import Store
from tests.chaos.network import free_port
from tests.chaos.postgres import running
from tests.end_to_end.server import wait_until

RUNS, STEPS, CONNECTIONS, ROUNDS = 1_000, 10, 32, 2
FEW, FEW_ROUNDS = 50, 10
"""Runs that begin with an empty store, to tell what a report costs there and in a full one."""
COUNTS = (1, 2, 4)
LOOK_S = 0.05
PACE_S, READINGS = 20.0, 12
"""Trainers at their own pace: a batch of each so often; the collectors' memory is read so many times."""
DISK_MIB = 6_000
_WAITS = """
SELECT count(*) FILTER (WHERE wait_event_type = 'Lock'), count(*) FROM pg_stat_activity
WHERE state <> 'idle' AND backend_type = 'client backend' AND pid <> pg_backend_pid()
"""
_GROW = """
INSERT INTO points (series, step, value, kind)
SELECT :first + n / 10000, n % 10000, 0.5, 0 FROM generate_series(0, :count - 1) AS n
"""
_PLANS = (
    "SELECT metric, number FROM series WHERE attempt = 1",
    "SELECT * FROM points WHERE series = ANY('{1,2,3}') AND step = ANY('{1,2,3}')",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Collector:
    url: str
    process: subprocess.Popen[bytes]
    name: str

    def answers(self) -> bool:
        try:
            urllib.request.urlopen(f"{self.url}/healthz", timeout=2).close()
        except OSError:
            return False
        return True


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        running(DISK_MIB) as postgres,
        closing(Store(postgres.url)) as store,
    ):
        store.migrate()
        token = tokens.make_token()
        with store.begin() as connection:
            tokens.register(connection, token, "load", {"ingest"}, datetime.now(timezone.utc))
        _scale(Path(folder), postgres.url, store, token)


def _scale(folder: Path, url: str, store: Store, token: str) -> None:
    turn, base = 0, 0.0
    print(
        f"{RUNS} runs, batches of {STEPS} steps x {METRICS} metrics, {CONNECTIONS} connections, "
        f"{os.cpu_count()} cores"
    )
    with collectors(folder, url, max(COUNTS)) as servers:
        urls = [server.url for server in servers]
        _send(urls, token, 1, turn, FEW)  # makes the runs and their series
        turn += 1
        rates = {FEW * STEPS * METRICS: _rate(urls, token, turn)}
        turn += FEW_ROUNDS
        _send(urls, token, 1, turn)
        turn += 1
        for count in (*COUNTS, COUNTS[0]):
            with lock_waits(store) as waits:
                loaded = _send(urls[:count], token, ROUNDS, turn)
            turn += ROUNDS
            rate = loaded.steps / loaded.wall_s
            base = base or rate
            assert loaded.refused == 0, f"{loaded.refused} batches were refused"
            print(
                f"  {count} collectors: {rate:>8,.0f} reports/s ({rate / base:4.2f} of one), a batch "
                f"{loaded.percentile_s(0.5) * 1e3:.0f} ms, p99 {loaded.percentile_s(0.99) * 1e3:.0f} ms; "
                f"{waits[0]} of {waits[1]} looks at a session found it waiting for a lock"
            )
        _print_memory(servers)
        turn = _grow(store, urls, token, turn, rates)
        _print_memory(servers)
        _go_on(servers, token, turn)
    _plans(store)


def _send(urls: Sequence[str], token: str, rounds: int, first: int, runs: int = RUNS) -> Loaded:
    bodies = [body for made in batches(runs, rounds, STEPS, first=first) for body in made]
    return asyncio.run(load(urls, token, bodies, steps=STEPS, connections=CONNECTIONS))


def _rate(urls: Sequence[str], token: str, turn: int) -> float:
    """Reports a second of a few runs, on one collector."""
    loaded = _send(urls[:1], token, FEW_ROUNDS, turn, FEW)
    return loaded.steps / loaded.wall_s


def _grow(store: Store, urls: Sequence[str], token: str, turn: int, rates: dict[int, float]) -> int:
    """What a report costs as the store grows; the next turn."""
    most, size, first = int(os.environ.get("BENCH_COLLECTORS_SAMPLES", "1000000")), 0, 1_000_000_000
    with store.read() as connection:
        size = connection.scalar(text("SELECT count(*) FROM points")) or 0
    for goal in (size, *(goal for goal in (1_000_000, 3_000_000, 10_000_000) if size < goal <= most)):
        if goal > size:
            with store.begin() as connection:
                connection.execute(text(_GROW), {"first": first, "count": goal - size})
            first, size = first + 1_000_000, goal
        rates[size] = _rate(urls, token, turn)
        turn += FEW_ROUNDS
        size += FEW * FEW_ROUNDS * STEPS * METRICS
    base = next(iter(rates.values()))
    print("  samples stored: reports/s with one collector (of the first)")
    for stored, rate in rates.items():
        print(f"    {stored:>12,}: {rate:>8,.0f} ({rate / base:4.2f})")
    return turn


def _go_on(servers: Sequence[Collector], token: str, turn: int) -> None:
    """Memory of each collector while trainers send for long, evenly spread over all collectors."""
    whole_s, urls = 60.0 * float(os.environ.get("BENCH_COLLECTORS_MINUTES", "0")), [s.url for s in servers]
    began, read = time.monotonic(), 0
    readings: list[list[float]] = []
    while (passed_s := time.monotonic() - began) < whole_s:
        if passed_s >= read * whole_s / READINGS:
            read += 1
            readings.append([_resident(server)["VmRSS"] for server in servers])
            told = ", ".join(f"{mib:.1f}" for mib in readings[-1])
            print(f"    after {passed_s / 60:4.1f} min: {told} MiB resident", flush=True)
        loaded = _send(urls, token, 1, turn)
        assert loaded.refused == 0, f"{loaded.refused} batches were refused"
        turn += 1
        time.sleep(max(0.0, passed_s + PACE_S - (time.monotonic() - began)))
    if readings:
        warm = readings[len(readings) // 4]
        grown = [100 * (last / first - 1) for first, last in zip(warm, readings[-1], strict=True)]
        print(f"    since the first quarter: {', '.join(f'{share:+.1f} %' for share in grown)}")


def _plans(store: Store) -> None:
    with store.begin() as connection:
        connection.execute(text("ANALYZE points"))
        connection.execute(text("ANALYZE series"))
        for query in _PLANS:
            plan = connection.scalars(text(f"EXPLAIN {query}")).all()
            print(f"  {query}\n" + "\n".join(f"    {line}" for line in plan))


@contextmanager
def collectors(folder: Path, url: str, count: int) -> Iterator[list[Collector]]:
    """So many processes of the service on one database, once each answers."""
    started = []
    try:
        for number in range(count):
            port, log = free_port(), folder / f"collector{number}.log"
            env = {**os.environ, "RLVITALS_DATABASE_URL": url, "RLVITALS_HOME": str(folder / f"home{number}")}
            command = [sys.executable, "-m", "rlvitals.cli", "serve", "--role", "collector", "--port", str(port)]
            with log.open("wb") as out:
                process = subprocess.Popen(command, env=env, stdout=out, stderr=subprocess.STDOUT)
            started.append(Collector(url=f"http://127.0.0.1:{port}", process=process, name=log.stem))
        for collector in started:
            wait_until(collector.answers, f"{collector.name} to answer")
        yield started
    finally:
        for collector in started:
            collector.process.kill()
            collector.process.wait()


@contextmanager
def lock_waits(store: Store) -> Iterator[list[int]]:
    """[looks that found a busy session waiting for a lock, looks at busy sessions], counted while it lasts."""
    counted, over = [0, 0], threading.Event()

    def watch() -> None:
        while not over.wait(LOOK_S):
            with store.read() as connection:
                waiting, busy = connection.execute(text(_WAITS)).one()
            counted[0], counted[1] = counted[0] + waiting, counted[1] + busy

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield counted
    finally:
        over.set()
        thread.join()


def _print_memory(servers: Sequence[Collector]) -> None:
    """Resident now and at the most."""
    for server in servers:
        mib = _resident(server)
        print(f"    {server.name}: {mib['VmRSS']:.0f} MiB resident, {mib['VmHWM']:.0f} at the most")


def _resident(server: Collector) -> dict[str, float]:
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return {key: int(re.findall(rf"{key}:\s+(\d+)", status)[0]) / 1024 for key in ("VmRSS", "VmHWM")}
