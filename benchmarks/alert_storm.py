"""10,000 alerts in a minute from 100 runs: what chat gets, whether the counts add up, and the API meanwhile.

A service of its own, its worker and dispatcher included, with two chats at the wire: one that gathers a run's
alerts, as chats do where nothing else is said, and one that gathers nothing and has only its budget.
BENCH_DATABASE_URL names another database than a fresh SQLite file. Fails where a change is lost or counted twice,
a budget is exceeded, or a call is refused.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path

import httpx2
from sqlalchemy import func, insert, select

from rlvitals.contract.alert import Alert, AlertState, Severity, Transition
from rlvitals_monitor.store import runs
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.numbers import to_micros
from rlvitals_monitor.store.tables import alerts, deliveries, transitions
from tests.monitor.notify.provider import Got, Provider, Said

ALERTS, RUNS, STORM_S, QUIET_S, BEAT_S = 10_000, 100, 60.0, 15.0, 0.5
BUDGET, WINDOW_S, DRAIN_S = 20, 60.0, 240.0
CHANNELS = """
channels:
  - {{name: gathers, kind: webhook, url: "{gathering}", allow_private: true, budget: 20,
      group_wait: 10s, group_interval: 5m}}
  - {{name: hasty, kind: webhook, url: "{hasty}", allow_private: true, budget: 20}}
"""


@dataclass(slots=True)
class Chat:
    """A provider that takes everything and keeps when it came and what it counted."""

    at: list[float] = field(default_factory=list)
    told: list[int] = field(default_factory=list)

    def __call__(self, got: Got) -> Said | None:
        body = json.loads(got.body)
        counted = sum(body["totals"].values())
        self.at.append(time.monotonic())
        self.told.append(counted or len(body["changes"]))
        return None

    @property
    def busiest(self) -> int:
        """The most messages in any minute."""
        return max((sum(1 for at in self.at if start <= at < start + WINDOW_S) for start in self.at), default=0)


def main() -> None:
    chat, hasty = Chat(), Chat()
    with tempfile.TemporaryDirectory() as folder, Provider(check=chat).running() as one, _running(hasty) as two:
        channels = Path(folder) / "channels.yaml"
        channels.write_text(CHANNELS.format(gathering=one.url, hasty=two.url))
        database = os.environ.get("BENCH_DATABASE_URL") or f"sqlite:///{folder}/bench.db"
        with _service(Path(folder), database, channels) as client:
            store = Store(database)
            _begin(client)
            quiet, storm = Probe(client), Probe(client)
            with quiet.running():
                time.sleep(QUIET_S)
            with storm.running():
                took = _storm(store)
            settled = _settle(store)
            failed = [
                *_report_chats(store, {"gathers": chat, "hasty": hasty}, took, settled),
                *_report_calls(quiet, storm),
            ]
            store.close()
    if failed:
        raise AssertionError("; ".join(failed))


@contextmanager
def _running(chat: Chat) -> Iterator[Provider]:
    with Provider(check=chat).running() as provider:
        yield provider


@contextmanager
def _service(folder: Path, database: str, channels: Path) -> Iterator[httpx2.Client]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    env = {name: value for name, value in os.environ.items() if not name.startswith("RLVITALS_")}
    env |= {"RLVITALS_HOME": str(folder), "RLVITALS_DATABASE_URL": database, "RLVITALS_CHANNELS": str(channels)}
    command = [sys.executable, "-m", "rlvitals_monitor", "--port", str(port)]
    with (folder / "service.log").open("wb") as log:
        process = subprocess.Popen(command, env=env, stdout=log, stderr=subprocess.STDOUT)
    try:
        yield _client(folder, port, process)
    finally:
        process.terminate()
        process.wait(30)


def _client(folder: Path, port: int, process: subprocess.Popen[bytes]) -> httpx2.Client:
    for _ in range(600):
        if process.poll() is not None:
            break
        try:
            httpx2.get(f"http://127.0.0.1:{port}/healthz", timeout=5.0)
            token = json.loads((folder / "token.json").read_text())["token"]
        except (httpx2.HTTPError, OSError, ValueError):
            time.sleep(0.1)
            continue
        headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
        return httpx2.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=60.0)
    raise RuntimeError((folder / "service.log").read_text()[-2000:])


def _report_of(run: int, step: int) -> bytes:
    row = [step, step, time.time(), 0.5]
    return json.dumps({"run": {"id": f"r{run}"}, "attempt": "a", "names": ["loss"], "rows": [row]}).encode()


def _begin(client: httpx2.Client) -> None:
    for run in range(RUNS):
        client.post("/api/v1/reports", content=_report_of(run, 1)).raise_for_status()


class Probe:
    """Asks and reports as a page and a trainer do, twenty times a second, and keeps how long each answer took."""

    def __init__(self, client: httpx2.Client) -> None:
        self._client = client
        self._ending = threading.Event()
        self.refused = 0
        self.taken: dict[str, list[float]] = {"GET runs": [], "GET alerts": [], "POST reports": []}

    @contextmanager
    def running(self) -> Iterator[None]:
        thread = threading.Thread(target=self._ask)
        thread.start()
        try:
            yield
        finally:
            self._ending.set()
            thread.join(120)

    def _ask(self) -> None:
        step = 2 + int(time.time())
        while not self._ending.wait(0.05):
            step += 1
            self._time("GET runs", "GET", "/api/v1/runs?limit=50")
            self._time("GET alerts", "GET", "/api/v1/alerts?limit=50")
            self._time("POST reports", "POST", "/api/v1/reports", _report_of(step % RUNS, step))

    def _time(self, name: str, method: str, path: str, body: bytes | None = None) -> None:
        began = time.perf_counter()
        try:
            self._client.request(method, path, content=body).raise_for_status()
        except httpx2.HTTPError:
            self.refused += 1
        self.taken[name].append((time.perf_counter() - began) * 1000)


def _storm(store: Store) -> float:
    """Alerts fire as the worker would have written them, evenly over the minute; how many seconds it took."""
    beats = round(STORM_S / BEAT_S)
    began = time.monotonic()
    with store.read() as conn:
        numbers = [runs.find_attempt(conn, f"r{run}")[0] for run in range(RUNS)]
    for beat in range(beats):
        with store.begin() as conn:
            some = range(ALERTS * beat // beats, ALERTS * (beat + 1) // beats)
            fired = [_fired(number, datetime.now(timezone.utc)) for number in some]
            conn.execute(insert(alerts), [_alert_row(one.alert, numbers) for one in fired])
            conn.execute(insert(transitions), [_transition_row(one) for one in fired])
        time.sleep(max(0.0, began + (beat + 1) * BEAT_S - time.monotonic()))
    return time.monotonic() - began


def _fired(number: int, now: datetime) -> Transition:
    alert = Alert(
        id=f"storm{number}",
        run=f"r{number % RUNS}",
        attempt="a",
        rule=f"storm_{number // RUNS % 10}",
        severity=Severity.WARNING,
        state=AlertState.FIRING,
        since_step=number,
        since_time=now,
        metric="loss",
        value=float("nan"),
        summary="One of very many.",
    )
    before, after = AlertState.PENDING, AlertState.FIRING
    return Transition(id=alert.id, alert=alert, before=before, after=after, step=number, at=now, reason="storm")


def _alert_row(alert: Alert, numbers: Sequence[int]) -> dict[str, object]:
    return {
        "id": alert.id,
        "run": alert.run,
        "attempt": numbers[int(alert.run[1:])],
        "rule": alert.rule,
        "severity": alert.severity.value,
        "state": alert.state.value,
        "since_step": alert.since_step,
        "since_time": to_micros(alert.since_time),
        "body": alert,
    }


def _transition_row(fired: Transition) -> dict[str, object]:
    return {
        "id": fired.id,
        "alert": fired.alert.id,
        "run": fired.alert.run,
        "before": fired.before.value,
        "after": fired.after.value,
        "step": fired.step,
        "at": to_micros(fired.at),
        "reason": fired.reason,
        "body": fired.alert,
        "routed": False,
    }


def _settle(store: Store) -> float:
    """Seconds until the hasty chat has everything."""
    began = time.monotonic()
    while time.monotonic() - began < DRAIN_S and _count(store, "hasty", "delivered") < ALERTS:
        time.sleep(0.5)
    return time.monotonic() - began


def _count(store: Store, channel: str, *states: str) -> int:
    with store.read() as conn:
        which = (deliveries.c.channel == channel, deliveries.c.state.in_(states))
        return conn.scalar(select(func.count()).select_from(deliveries).where(*which)) or 0


def _report_chats(store: Store, chats: Mapping[str, Chat], took: float, settled: float) -> list[str]:
    """Prints what each chat got; what is not as it must be."""
    kind, failed = "SQLite" if store.is_sqlite else "PostgreSQL", []
    print(f"{ALERTS} alerts of {RUNS} runs in {took:.0f} s on {kind}; all told {settled:.0f} s later")
    for name, chat in chats.items():
        told, waiting = sum(chat.told), _count(store, name, "waiting")
        if told + waiting != ALERTS:
            failed.append(f"{name}: {told} told + {waiting} waiting are not {ALERTS}")
        if chat.busiest > BUDGET:
            failed.append(f"{name}: {chat.busiest} messages in a minute are more than its budget")
        print(
            f"  {name:8}{len(chat.at):4} messages, at most {chat.busiest} in a minute (budget {BUDGET}): "
            f"{told} told + {waiting} waiting = {told + waiting}"
        )
    return failed


def _report_calls(quiet: Probe, storm: Probe) -> list[str]:
    heads = "".join(f"{head:>9}" for head in ("median", "p99", "max"))
    print(f"  {'API, ms':14}{heads}   in the storm: {heads}{'p99 ratio':>11}")
    for name in quiet.taken:
        calm, loud = _quantiles(quiet.taken[name]), _quantiles(storm.taken[name])
        before, after = ("".join(f"{value:9.1f}" for value in some) for some in (calm, loud))
        print(f"  {name:14}{before}{'':16} {after}{loud[1] / calm[1]:11.1f}")
    refused = quiet.refused + storm.refused
    return [f"{refused} calls of the API failed"] if refused else []


def _quantiles(taken: Sequence[float]) -> tuple[float, float, float]:
    ordered = sorted(taken)
    return ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.99)], ordered[-1]


if __name__ == "__main__":
    main()
