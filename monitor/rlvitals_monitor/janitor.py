"""Removes what was deleted and what has come of age, a little in each round, so that reports never wait for it."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection

from rlvitals_monitor.retention import Cutoffs, cutoffs
from rlvitals_monitor.store import aged, deletion, horizon, purge, retention
from rlvitals_monitor.store.audit import append_audit
from rlvitals_monitor.store.engine import Store

ROWS_A_TRANSACTION = 5_000
SPENT_A_ROUND_S = 0.2
"""Of each round of the worker; at least one transaction is made."""
LOOK_EVERY = timedelta(seconds=5)
"""How soon after it was deleted a run begins to go."""
AGE_EVERY = timedelta(hours=1)
"""How often ages are looked at: they are told in days."""
RUNS_A_LOOK = 100
WHO = "retention"

log = logging.getLogger(__name__)

Has = Callable[[Connection, int, int], bool]
Remove = Callable[[Connection, int, int, int], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Task:
    """Steps of an attempt up to ``through`` lose what ``remove`` removes."""

    attempt: int
    through: int
    remove: Remove


class Janitor:
    """``look`` from one thread, as often as you like."""

    def __init__(self, *, timer: Callable[[], float] = time.monotonic) -> None:
        self._timer = timer
        self._tasks: deque[_Task] = deque()
        self._looked_at: datetime | None = None
        self._aged_at: datetime | None = None
        self._doomed: list[str] = []

    def look(self, store: Store, now: datetime) -> list[str]:
        """The runs that came of age in this look, and so were deleted."""
        began = self._timer()
        expired = self._age(store, now) if self._is_time(self._aged_at, now, AGE_EVERY) else []
        if expired or self._doomed or self._is_time(self._looked_at, now, LOOK_EVERY):
            self._looked_at = now
            with store.read() as connection:
                self._doomed = purge.pending(connection, RUNS_A_LOOK)
        while self._doomed or self._tasks:
            self._step(store, now)
            if self._timer() - began >= SPENT_A_ROUND_S:
                break
        return expired

    @property
    def is_done(self) -> bool:
        """Nothing that is known of waits to be removed."""
        return not (self._doomed or self._tasks)

    def _step(self, store: Store, now: datetime) -> None:
        """One transaction. What of a run still waits for a message is found again at the next look."""
        if self._doomed:
            with store.begin() as connection:
                removed = purge.remove_run(connection, self._doomed[0], ROWS_A_TRANSACTION, now)
            if removed < ROWS_A_TRANSACTION:
                self._doomed.pop(0)
            return
        task = self._tasks[0]
        with store.begin() as connection:
            removed = task.remove(connection, task.attempt, task.through, ROWS_A_TRANSACTION)
        if removed < ROWS_A_TRANSACTION:
            self._tasks.popleft()

    def _age(self, store: Store, now: datetime) -> list[str]:
        self._aged_at = now
        with store.read() as connection:
            chosen = {view.project: view for view in retention.read_all(connection) if view.project}
        expired: list[str] = []
        self._tasks.clear()
        for project, view in chosen.items():
            limits = cutoffs(view, now)
            expired += self._expire(store, project, limits.runs, now)
            with store.read() as connection:
                self._tasks.extend(_tasks(connection, project, limits))
        return expired

    def _expire(self, store: Store, project: str, before: datetime | None, now: datetime) -> list[str]:
        if before is None:
            return []
        with store.read() as connection:
            found = aged.unseen_since(connection, project, before, RUNS_A_LOOK)
        gone = []
        for run in found:
            with store.begin() as connection:
                if aged.is_unseen_since(connection, run, before) and deletion.mark(connection, run, WHO, now):
                    said = f"{project}: nothing was heard of it since {before:%Y-%m-%d}"
                    append_audit(connection, at=now, run=run, who=WHO, what="run deleted", detail=said)
                    gone.append(run)
        if gone:
            log.info("%d runs of project %s came of age and were deleted", len(gone), project)
        return gone

    @staticmethod
    def _is_time(before: datetime | None, now: datetime, every: timedelta) -> bool:
        return before is None or not timedelta(0) <= now - before < every


def _tasks(connection: Connection, project: str, limits: Cutoffs) -> list[_Task]:
    aging: tuple[tuple[datetime | None, Has, Remove], ...] = (
        (limits.points, aged.has_points, purge.remove_points),
        (limits.texts, aged.has_texts, purge.remove_texts),
        (limits.histograms, aged.has_histograms, purge.remove_histograms),
    )
    wanted = [(before, has, remove) for before, has, remove in aging if before is not None]
    found = []
    for attempt in aged.attempts_of(connection, project) if wanted else ():
        for before, has, remove in wanted:
            through = horizon.last_step_before(connection, attempt, before)
            if through is not None and has(connection, attempt, through):
                found.append(_Task(attempt=attempt, through=through, remove=remove))
    return found
