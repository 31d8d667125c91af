"""kill -9 of a dispatcher's process at each of claim, send and record, and what becomes of what it had in hand.

A few rounds here; `make crash-dispatcher` runs CRASH_ROUNDS of them and prints the counts.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from datetime import datetime

import pytest
from sqlalchemy import func, select

from rlvitals.contract.alert import Transition
from rlvitals_monitor.notify.attempt import LEASE_MARGIN_S
from rlvitals_monitor.notify.channel import Channels
from rlvitals_monitor.notify.dispatch import route
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.tables import deliveries, messages, sends
from tests.monitor.notify.crash.nursery import Order, channel_to
from tests.monitor.notify.crash.point import POINTS, UNRECORDED, Point
from tests.monitor.notify.provider import Got, Provider, Said
from tests.monitor.planted import a_transition, an_alert, later, plant_run, plant_transition

ROUNDS = int(os.environ.get("CRASH_ROUNDS", str(len(POINTS))))
ROUND_S = LEASE_MARGIN_S + 200.0
"""By the dispatchers' clock: longer than any lease, so that each round finds what the last one dropped."""


@dataclass(slots=True, kw_only=True)
class Nursery:
    process: subprocess.Popen[str]

    def dispatch(self, order: Order, kills: Killing) -> int:
        """How the process ended: 0, or minus the signal."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(asdict(order)) + "\n")
        self.process.stdin.flush()
        kills.aim(self._read())
        return self._read()

    def _read(self) -> int:
        assert self.process.stdout is not None
        return int(self.process.stdout.readline())


@dataclass(slots=True)
class Killing:
    """What the provider does with a request: it keeps it and, if told so, kills who sent it before it answers."""

    accepted: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    spares: int = -1
    _pid: int = 0
    _known: threading.Event = field(default_factory=threading.Event)

    def expect(self, point: Point, nth: int) -> None:
        self._known.clear()
        self.spares = nth - 1 if point is Point.SENT else -1

    def aim(self, pid: int) -> None:
        self._pid = pid
        self._known.set()

    def __call__(self, got: Got) -> Said | None:
        changes = json.loads(got.body)["changes"]
        self.accepted.append((got.headers["webhook-id"], tuple(change["id"] for change in changes)))
        if self.spares == 0:
            self._known.wait(20)
            os.kill(self._pid, signal.SIGKILL)
        self.spares -= 1
        return None


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    command = [sys.executable, "-m", "tests.monitor.notify.crash.nursery"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Nursery(process=process)
        process.terminate()


def test_every_transition_is_delivered_and_recorded_exactly_once(
    store: Store, database_url: str, nursery: Nursery, capsys: pytest.CaptureFixture[str]
) -> None:
    kills = Killing()
    planted: list[str] = []
    deaths: Counter[Point] = Counter()
    with Provider(check=kills).running() as provider:
        for number in range(ROUNDS):
            point, nth = POINTS[number % len(POINTS)], 1 + number // len(POINTS) % 3
            now = later(ROUND_S * number)
            planted += plant_news(store, number, provider, now)
            kills.expect(point, nth)
            order = Order(
                database=database_url, hook=provider.url, now=now.isoformat(), point=point.value, nth=nth
            )
            ended = nursery.dispatch(order, kills)
            assert ended in (0, -signal.SIGKILL), f"{point}: {ended}"
            deaths[point] += ended != 0
        kills.expect(Point.CLAIMED, 1)
        now = later(ROUND_S * ROUNDS)
        assert nursery.dispatch(Order(database=database_url, hook=provider.url, now=now.isoformat()), kills) == 0
    keys = Counter(key for key, _ in kills.accepted)
    twice = sum(keys.values()) - len(keys)
    told = Counter(change for changes in dict(kills.accepted).values() for change in changes)
    if "CRASH_ROUNDS" in os.environ:
        with capsys.disabled():
            report(store, deaths, planted, keys, twice)
    assert min(deaths[point] for point in POINTS) >= 1
    assert len(set(kills.accepted)) == len(keys), "what is sent again is what was sent"
    assert told == Counter(planted), "by idempotency key each transition came once, and none is missing"
    assert twice == sum(deaths[point] for point in UNRECORDED)
    assert recorded(store) == (len(planted), len(keys), len(keys))


def plant_news(store: Store, number: int, provider: Provider, now: datetime) -> list[str]:
    """Two alerts of one run, which share a message, and one of another."""
    fired: list[Transition] = []
    for i, run in enumerate((f"r{number}", f"r{number}", f"s{number}")):
        alert = an_alert(id=f"a{number}-{i}", run=run, rule=f"rule{i}", since_time=now)
        fired.append(a_transition(alert, id=f"x{number}-{i}", at=now))
    with store.begin() as conn:
        plant_run(conn, f"r{number}")
        plant_run(conn, f"s{number}")
        for transition in fired:
            plant_transition(conn, transition)
            route(conn, transition, Channels(items=(channel_to(provider.url),)), now)
    return [transition.id for transition in fired]


def recorded(store: Store) -> tuple[int, int, int]:
    """Deliveries and messages that are delivered, and attempts recorded as such; nothing is in another state."""
    with store.read() as conn:
        states = set(conn.scalars(select(deliveries.c.state))) | set(conn.scalars(select(messages.c.state)))
        assert states == {"delivered"}
        counts = [
            conn.scalar(select(func.count()).select_from(table).where(which))
            for table, which in (
                (deliveries, deliveries.c.message.is_not(None)),
                (messages, messages.c.delivered_at.is_not(None)),
                (sends, sends.c.verdict == "delivered"),
            )
        ]
    return (counts[0] or 0, counts[1] or 0, counts[2] or 0)


def report(store: Store, deaths: Counter[Point], planted: list[str], keys: Counter[str], twice: int) -> None:
    kind = "SQLite" if store.is_sqlite else "PostgreSQL"
    died = ", ".join(f"{point.value} {deaths[point]}" for point in POINTS)
    unrecorded = sum(deaths[point] for point in UNRECORDED)
    print(
        f"\n{kind}: {sum(deaths.values())} dispatchers killed ({died})\n"
        f"  {len(planted)} transitions in {len(keys)} messages, {sum(keys.values())} accepted; "
        f"{twice} accepted twice, where {unrecorded} died between acceptance and record; "
        f"by idempotency key 0 told twice, 0 lost"
    )
