"""Tells waiting readers that something of a run changed: any thread publishes, the event loop waits.

Of one process; `fanout` carries changes from one to the others.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Iterable

EVERYTHING = ""
"""The name under which a change of any run is counted."""


_Waiter = tuple[asyncio.AbstractEventLoop, asyncio.Event]


class Live:
    """A version for each run, which only grows, also over a restart of the service."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._start = self._next = time.time_ns() // 1000
        self._versions: dict[str, int] = {}
        self._waiting: dict[str, set[_Waiter]] = {}
        self.told: Callable[[str], None] = lambda _run: None
        """Called with each run that is published here, to tell other processes."""

    def publish(self, run: str) -> None:
        """Counts a change of ``run`` that was made here and wakes who waits for it; from any thread."""
        self.note(run)
        self.told(run)

    def note(self, run: str) -> None:
        """As `publish`, of a change that another process made."""
        with self._lock:
            self._advance()
            self._versions[run] = self._versions[EVERYTHING] = self._next
            woken = [*self._waiting.pop(run, ()), *self._waiting.pop(EVERYTHING, ())]
        _wake(woken)

    def stir(self) -> None:
        """Something may have changed, and nobody knows what: all runs count as changed."""
        with self._lock:
            self._advance()
            self._start = self._next
            self._versions.clear()
            woken = [waiter for waiting in self._waiting.values() for waiter in waiting]
            self._waiting.clear()
        _wake(woken)

    def _advance(self) -> None:
        self._next = max(self._next + 1, time.time_ns() // 1000)

    def version(self, run: str = EVERYTHING) -> int:
        with self._lock:
            return self._versions.get(run, self._start)

    async def wait(self, run: str, after: int | None, timeout_s: float) -> int:
        """The version as soon as it is not ``after``, at the latest after ``timeout_s``; at once for None."""
        event, loop = asyncio.Event(), asyncio.get_running_loop()
        with self._lock:
            version = self._versions.get(run, self._start)
            if after is None or version != after:
                return version
            self._waiting.setdefault(run, set()).add((loop, event))
        try:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(event.wait(), timeout_s)
        finally:
            self._leave(run, (loop, event))
        return self.version(run)

    def _leave(self, run: str, waiter: _Waiter) -> None:
        with self._lock:
            waiting = self._waiting.get(run, set())
            waiting.discard(waiter)
            if not waiting:
                self._waiting.pop(run, None)


def _wake(waiters: Iterable[_Waiter]) -> None:
    for loop, event in waiters:
        # The loop of a reader that went away may be closed already.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(event.set)
