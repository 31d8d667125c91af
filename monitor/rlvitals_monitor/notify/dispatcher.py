"""Threads that deliver, one for each channel: a provider that hangs holds up neither others nor the rules."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timezone

from rlvitals_monitor.notify.channel import Channels
from rlvitals_monitor.notify.dispatch import deliver_due
from rlvitals_monitor.store.engine import Store

LOOK_S = 1.0
"""How often an idle thread looks for deliveries that other processes routed, and for retries that fell due."""

log = logging.getLogger(__name__)


class Dispatcher:
    """Start it once; `wake` it after routing. `stop` waits for the attempts in flight."""

    def __init__(
        self,
        store: Store,
        channels: Channels,
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(timezone.utc),
        look_s: float = LOOK_S,
    ) -> None:
        self._store, self._clock, self._look_s = store, clock, look_s
        self._turn = threading.Condition()
        self._rounds = 0
        self._stopping = False
        self._threads = [
            threading.Thread(target=self._run, args=(replace(channels, items=(channel,)),), daemon=True)
            for channel in channels
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def wake(self) -> None:
        with self._turn:
            self._rounds += 1
            self._turn.notify_all()

    def stop(self, timeout_s: float = 15.0) -> None:
        with self._turn:
            self._stopping = True
            self._turn.notify_all()
        for thread in self._threads:
            if thread.is_alive():
                thread.join(timeout_s)

    def _run(self, channels: Channels) -> None:
        seen = -1
        while True:
            with self._turn:
                # The lambda is only called within this round, so it cannot see another's `seen`.
                self._turn.wait_for(lambda: self._stopping or self._rounds != seen, self._look_s)  # noqa: B023
                if self._stopping:
                    return
                seen = self._rounds
            self._deliver(channels)

    def _deliver(self, channels: Channels) -> None:
        try:
            deliver_due(self._store, channels, self._clock())
        except Exception:  # a store that is away for a moment must not end the thread
            log.exception("deliveries to %s failed and will be tried again", channels.items[0].name)
