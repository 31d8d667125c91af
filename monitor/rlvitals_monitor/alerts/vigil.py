"""Watches over runs that stopped talking or stepping: which are judged, since when, and what is recorded.

Several workers may watch one database: each change is decided again under the run's lock, so it is recorded once.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import Connection

from rlvitals.contract.alert import Transition
from rlvitals_monitor.alerts import liveness
from rlvitals_monitor.alerts.shared_silence import SharedSilence, shared_silence
from rlvitals_monitor.store import alerts, evaluations, pulse, runs, vigil
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.pulse import Heard

LOOK_EVERY = timedelta(seconds=10)
RUNS_A_LOOK = 100
"""When a whole cluster falls silent, the worker shall not stop judging: the next look goes on with the others."""
DEAF_AFTER = timedelta(seconds=60)
"""A gap between two looks after which nobody can say who was silent meanwhile, they or we."""

log = logging.getLogger(__name__)


class _Seen(NamedTuple):
    """The phase in which a run was found at the look ``at``, its last word, and that of a busy phase before."""

    at: datetime
    phase: str
    seen_at: datetime
    busy_until: datetime | None


class _Look(NamedTuple):
    """One look at all runs: since when we listen, and whether many fell silent together."""

    now: datetime
    since: datetime
    shared: SharedSilence | None


class Vigil:
    """``look`` from one thread, as often as you like. It remembers since when it listens, and phases."""

    def __init__(self) -> None:
        self._looked_at: datetime | None = None
        self._listening_since: datetime | None = None
        self._seen: dict[str, _Seen] = {}
        self._last = ""
        self._is_ahead = False

    def look(self, store: Store, now: datetime) -> list[Transition]:
        """What was recorded; nothing where it is too early for another look.

        A look that fails makes it deaf: while the store is away, no client is heard.
        """
        gap = None if self._looked_at is None else now - self._looked_at
        if gap is not None and timedelta(0) <= gap < LOOK_EVERY:
            return []
        since = self._listening_since
        if since is None or gap is None or not timedelta(0) <= gap < DEAF_AFTER:
            since = now
        self._looked_at, self._listening_since = now, None
        found = self._watch(store, now, since)
        self._listening_since = None if self._is_ahead else since
        return found

    def _watch(self, store: Store, now: datetime, since: datetime) -> list[Transition]:
        found: list[Transition] = []
        self._is_ahead = False
        with store.read() as connection:
            suspects = vigil.suspects(connection, now, liveness.NAMES, liveness.RULES[-1].name)
            shared = shared_silence(vigil.last_words(connection, now) if suspects else (), now)
        look = _Look(now, since, shared)
        self._seen = {run: self._seen[run] for run in suspects if run in self._seen}
        for run in self._turn_of(suspects):
            with store.read() as connection:
                heard = runs.read_heard(connection, run)
                if heard is None:
                    continue
                until = self._note(heard, self._seen.get(run), now)
                changes = _judge(connection, heard, look, until)
            if changes:
                with store.begin() as connection:
                    found += _record(connection, heard, look, until)
        return found

    def _turn_of(self, suspects: Sequence[str]) -> Sequence[str]:
        """At most `RUNS_A_LOOK`, which follow those of the last look."""
        start = bisect_right(suspects, self._last)
        chosen = [*suspects[start:], *suspects[:start]][:RUNS_A_LOOK]
        self._last = chosen[-1] if chosen else ""
        return chosen

    def _note(self, heard: Heard, before: _Seen | None, now: datetime) -> datetime | None:
        """Until when it was last heard in an earlier phase that takes its time.

        A run that spoke since the last look, and yet longer ago than that by our clock, was heard by another
        process: our clock runs ahead of its own, and would call runs silent that speak.
        """
        phase, seen_at = heard.signs.phase, heard.signs.seen_at
        if before is not None and before.seen_at < seen_at < before.at - pulse.LATE_AFTER:
            if not self._is_ahead:
                log.error("this clock runs ahead of where run %s is heard: no run is called silent", heard.run)
            self._is_ahead = True
        until = None if before is None else before.busy_until
        if before is not None and before.phase != phase and before.phase in liveness.BUSY_PHASES:
            until = before.seen_at
        self._seen[heard.run] = _Seen(now, phase, seen_at, until)
        return until


def _judge(connection: Connection, heard: Heard, look: _Look, until: datetime | None) -> list[Transition]:
    firing = vigil.open_alerts(connection, heard.run, liveness.NAMES)
    return liveness.judge(heard, firing, look.now, look.since, until, look.shared)


def _record(connection: Connection, heard: Heard, look: _Look, until: datetime | None) -> list[Transition]:
    """Decides again under the run's lock, by what is there now, and writes it down."""
    evaluations.lock_subject(connection, heard.attempt_number)
    there = runs.read_heard(connection, heard.run)
    changes = [] if there is None else _judge(connection, there, look, until)
    recorded = []
    for change in changes:
        number, _ = runs.find_attempt(connection, change.alert.run, change.alert.attempt)
        alerts.save(connection, number, change.alert)
        if alerts.add_transition(connection, change):
            recorded.append(change)
    return recorded
