"""Threads that deliver, one for each channel: a provider that hangs holds up neither others nor the rules.

One more thread looks at the channel book: a channel that is new gets a thread, one that is gone loses it, and one
that changed is used as it is now from its thread's next round on.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timezone

from sqlalchemy.exc import SQLAlchemyError

from rlvitals_monitor.notify.channel import Channels
from rlvitals_monitor.notify.channel_book import ChannelBook
from rlvitals_monitor.notify.dispatch import deliver_due
from rlvitals_monitor.store.engine import Store

LOOK_S = 1.0
"""How often an idle thread looks for deliveries that other processes routed, and for retries that fell due."""
LOOKING = "looking at the channels"

log = logging.getLogger(__name__)


class Dispatcher:
    """Start it once; `wake` it after routing. `stop` waits for the attempts in flight."""

    def __init__(
        self,
        store: Store,
        channels: Channels | ChannelBook,
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(timezone.utc),
        look_s: float = LOOK_S,
    ) -> None:
        self._store, self._clock, self._look_s = store, clock, look_s
        self._book = channels if isinstance(channels, ChannelBook) else ChannelBook(channels, clock())
        self._turn = threading.Condition()
        self._rounds = 0
        self._stopping = False
        self._watch = threading.Thread(target=self._keep_watch, name="rlvitals-channels", daemon=True)
        self._threads: dict[str, threading.Thread] = {}
        self.failing: dict[str, datetime] = {}
        """What fails, and since when."""
        self.beat_at = clock()
        """When the channels were last looked at: a standing clock is a dead dispatcher."""

    def start(self) -> None:
        self._man()
        self._watch.start()

    def wake(self) -> None:
        with self._turn:
            self._rounds += 1
            self._turn.notify_all()

    def stop(self, timeout_s: float = 15.0) -> None:
        with self._turn:
            self._stopping = True
            self._turn.notify_all()
            threads = [self._watch, *self._threads.values()]
        for thread in threads:
            if thread.is_alive():
                thread.join(timeout_s)

    def _keep_watch(self) -> None:
        while True:
            with self._turn:
                if self._turn.wait_for(lambda: self._stopping, self._look_s):
                    return
            try:
                self._book.refresh(self._store, self._clock())
                self.failing.pop(LOOKING, None)
            except (SQLAlchemyError, OSError):
                self.failing.setdefault(LOOKING, self._clock())
                log.exception("looking at the channels failed and will be tried again")
            self._man()
            self.beat_at = self._clock()

    def _man(self) -> None:
        """A thread for each channel that has none."""
        with self._turn:
            for channel in () if self._stopping else self._book.channels:
                if channel.name not in self._threads:
                    run = threading.Thread(target=self._run, args=(channel.name,), daemon=True)
                    self._threads[channel.name] = run
                    run.start()

    def _run(self, name: str) -> None:
        seen = -1
        while True:
            with self._turn:
                # The lambda is only called within this round, so it cannot see another's `seen`.
                self._turn.wait_for(lambda: self._stopping or self._rounds != seen, self._look_s)  # noqa: B023
                channels = self._book.channels
                channel = channels.get(name)
                if self._stopping or channel is None:
                    self._threads.pop(name, None)
                    self.failing.pop(f"delivering to {name}", None)
                    return
                seen = self._rounds
            self._deliver(replace(channels, items=(channel,)))

    def _deliver(self, channels: Channels) -> None:
        what = f"delivering to {channels.items[0].name}"
        try:
            deliver_due(self._store, channels, self._clock())
            self.failing.pop(what, None)
        except Exception:  # a store that is away for a moment must not end the thread
            self.failing.setdefault(what, self._clock())
            log.exception("%s failed and will be tried again", what)
