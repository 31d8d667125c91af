"""How much is taken in at once, and of whom: bounded before memory grows, refused with when to come again.

Room and turns are of one process; quotas also count what other processes say that they took. Whoever is refused
keeps what it has in its journal, and sends it later.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from hashlib import blake2b

import anyio
from anyio import CapacityLimiter
from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from rlvitals.contract.report import ReportBatch
from rlvitals_monitor.errors import TooMany

HOLDING_MIN_BYTES = 64 << 10
"""What a request takes at the least, however small its body is: its connection, its headers, its task."""
PARSED_TIMES = 8
"""A body that is parsed takes about so many times its bytes."""
FULL_RETRY_S = 2.0
TURN_S = 20.0
"""How long a batch waits for its run's turn before it is refused."""
BUCKETS_MAX = 10_000
RUN_CHARS = 128
"""An id that is longer is refused later, and must not be remembered here until then."""


class IntakeSettings(BaseSettings):
    """Read from ``RLVITALS_INTAKE_BYTES`` and so on; 0 in a quota means none."""

    model_config = SettingsConfigDict(env_prefix="RLVITALS_", extra="ignore", frozen=True)

    intake_bytes: int = Field(default=512 << 20, gt=0, description="memory for reports that wait or are parsed")
    run_at_once: int = Field(default=4, gt=0, description="batches of one run that are stored at the same time")
    run_values_per_minute: int = Field(default=6_000_000, ge=0, description="values that one run may report")
    token_values_per_minute: int = Field(default=0, ge=0, description="values that one token may report")


class Room:
    """Bytes that are held at once; from any thread. One holder alone always gets what it asks for."""

    def __init__(self, size: int) -> None:
        self.size, self.held = size, 0
        self._lock = threading.Lock()

    def hold(self) -> Holding:
        """Raises `TooMany` where there is not even room for one more request."""
        holding = Holding(self)
        holding.grow(HOLDING_MIN_BYTES)
        return holding

    def take(self, count: int, mine: int) -> None:
        with self._lock:
            if self.held + count > self.size and self.held > mine:
                raise TooMany(
                    f"the service holds {self.held} bytes of reports and has no room for more; send it again",
                    FULL_RETRY_S,
                )
            self.held += count

    def free(self, count: int) -> None:
        with self._lock:
            self.held -= count


class Holding:
    """What one request holds of a `Room` until it is left."""

    def __init__(self, room: Room) -> None:
        self._room, self.count = room, 0

    def grow(self, count: int) -> None:
        """Raises `TooMany`."""
        self._room.take(count, self.count)
        self.count += count

    def __enter__(self) -> Holding:
        return self

    def __exit__(self, *_: object) -> None:
        self._room.free(self.count)
        self.count = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """What is left of a quota at a moment, in seconds of any clock; below zero after a large batch."""

    left: float
    at: float


def spend(bucket: Bucket | None, cost: float, now: float, *, per_minute: float) -> tuple[Bucket, float]:
    """The bucket afterwards, and how many seconds to wait: 0 where the cost was taken.

    It holds a minute's worth. A batch larger than what is left is taken while anything is left: else one larger
    than a whole minute's worth could never be.
    """
    left = _left(bucket, now, per_minute)
    if left <= 0:
        return Bucket(left=left, at=now), (1 - left) * 60 / per_minute
    return Bucket(left=left - cost, at=now), 0.0


def _left(bucket: Bucket | None, now: float, per_minute: float) -> float:
    if bucket is None:
        return per_minute
    return min(per_minute, bucket.left + max(0.0, now - bucket.at) * per_minute / 60)


class Quota:
    """A bucket for each of ``what``; those that were longest unused are forgotten first, which makes them full.

    Processes know a bucket by its name, which begins with ``what``'s first letter.
    """

    def __init__(self, what: str, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._what, self._per_minute, self._clock = what, per_minute, clock
        self._buckets: OrderedDict[str, Bucket] = OrderedDict()
        self._lock = threading.Lock()

    def charge(self, key: str, cost: int) -> str:
        """The bucket's name, "" where there is no bound; raises `TooMany` with when there is something left."""
        if not self._per_minute:
            return ""
        name = self._what[0] + blake2b(key.encode(errors="replace"), digest_size=8).hexdigest()
        with self._lock:
            bucket, wait_s = spend(self._buckets.get(name), cost, self._clock(), per_minute=self._per_minute)
            self._keep(name, bucket)
        if wait_s:
            raise TooMany(f"{self._what} {key[:200]!r} may report {self._per_minute} values a minute", wait_s)
        return name

    def note(self, name: str, cost: int) -> None:
        """Another process took so much of it."""
        if not self._per_minute or not name.startswith(self._what[0]):
            return
        with self._lock:
            now = self._clock()
            left = _left(self._buckets.get(name), now, self._per_minute)
            self._keep(name, Bucket(left=left - cost, at=now))

    def _keep(self, name: str, bucket: Bucket) -> None:
        self._buckets[name] = bucket
        self._buckets.move_to_end(name)
        if len(self._buckets) > BUCKETS_MAX:
            self._buckets.popitem(last=False)


class Turns:
    """Batches of one run wait for each other here, where they take no other run's thread. On one event loop."""

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._queues: dict[str, tuple[CapacityLimiter, set[object]]] = {}

    @asynccontextmanager
    async def of(self, run: str) -> AsyncIterator[None]:
        """Raises `TooMany` after `TURN_S`."""
        limiter, waiting = self._queues.setdefault(run, (CapacityLimiter(self._at_once), set()))
        me = object()
        waiting.add(me)
        try:
            try:
                with anyio.fail_after(TURN_S):
                    await limiter.acquire_on_behalf_of(me)
            except TimeoutError:
                raise TooMany(f"run {run!r} has too many batches waiting; send it again", FULL_RETRY_S) from None
            try:
                yield
            finally:
                limiter.release_on_behalf_of(me)
        finally:
            waiting.discard(me)
            if not waiting:
                self._queues.pop(run, None)


class Intake:
    """``told`` is called with a bucket's name and what was taken of it, to tell other processes."""

    def __init__(self, settings: IntakeSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self.room = Room(settings.intake_bytes)
        self.turns = Turns(settings.run_at_once)
        self.told: Callable[[str, int], None] = lambda _name, _cost: None
        self._runs = Quota("run", settings.run_values_per_minute, clock)
        self._tokens = Quota("token", settings.token_values_per_minute, clock)

    def charge(self, batch: ReportBatch, token: str) -> None:
        """Raises `TooMany` where the batch's run, or the token that sends it, is over its quota.

        A run's is for each token: who may not report to a run must not be able to use its quota up.
        """
        cost = values_in(batch)
        if not cost:
            return
        for quota, key in ((self._runs, f"{batch.run.id[:RUN_CHARS]} of {token}"), (self._tokens, token)):
            if name := quota.charge(key, cost):
                self.told(name, cost)

    def note(self, spent: Mapping[str, int]) -> None:
        """What other processes have taken, by their buckets' names."""
        for name, cost in spent.items():
            self._runs.note(name, cost)
            self._tokens.note(name, cost)


def values_in(batch: ReportBatch) -> int:
    """What a batch counts for: each value of a step, and each other record, as one."""
    records = (batch.texts, batch.histograms, batch.events, batch.outcomes)
    return sum(len(step.values) for step in batch.steps) + sum(map(len, records))
