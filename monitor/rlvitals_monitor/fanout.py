"""Live changes across processes: what is published here is told to the others, and theirs is published here; so is
what is taken of quotas.

Two threads and two connections beside the pool. Nothing here is needed for what is stored to be right: without it
readers see a change when their wait is over, and the worker within a second.
"""

from __future__ import annotations

import logging
import secrets
import sqlite3
import threading
from collections.abc import Callable, Mapping

from sqlalchemy.exc import SQLAlchemyError

from rlvitals_monitor.live import Live
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.line import Line, open_line

GATHER_S = 0.05
"""Changes of so long go out together: many trainers make many changes of few runs."""
HEAR_S = 1.0
RETRY_S, RETRY_MAX_S = 0.5, 5.0
RUNS_MAX = 10_000
"""Runs that wait to be told of; of more it is only told that something changed."""

log = logging.getLogger(__name__)


class Fanout:
    """``start`` it once and ``stop`` it at the end. ``heard`` is called when another process told of a change,
    ``noted`` with what it took of quotas."""

    def __init__(
        self,
        store: Store,
        live: Live,
        *,
        heard: Callable[[], None] = lambda: None,
        noted: Callable[[Mapping[str, int]], None] = lambda _spent: None,
    ) -> None:
        self._store, self._live, self._heard, self._noted = store, live, heard, noted
        self._origin = secrets.token_hex(8)
        self._turn = threading.Condition()
        self._waiting: dict[str, None] = {}
        self._spent: dict[str, int] = {}
        self._stopping = False
        self._threads = [
            threading.Thread(
                target=self._keep, args=(work,), name=f"rlvitals-{work.__name__.strip('_')}", daemon=True
            )
            for work in (self._telling, self._hearing)
        ]
        self._lost: set[str] = set()

    def start(self) -> None:
        self._live.told = self.tell
        for thread in self._threads:
            thread.start()

    def stop(self, timeout_s: float = 5.0) -> None:
        """What was published before is still told, where the database answers."""
        with self._turn:
            self._stopping = True
            self._turn.notify_all()
        for thread in self._threads:
            if thread.is_alive():
                thread.join(timeout_s)

    @property
    def connected(self) -> bool:
        """Whether neither of its connections is lost."""
        return not self._lost

    def tell(self, run: str) -> None:
        """Never waits for the database."""
        with self._turn:
            if len(self._waiting) < RUNS_MAX:
                self._waiting[run] = None
            else:
                self._waiting = {"": None}
            self._turn.notify_all()

    def spend(self, quota: str, cost: int) -> None:
        """Never waits for the database. What does not fit is not told, so that others take too much for once."""
        with self._turn:
            if quota in self._spent or len(self._spent) < RUNS_MAX:
                self._spent[quota] = self._spent.get(quota, 0) + cost
            self._turn.notify_all()

    def _keep(self, work: Callable[[Line], None]) -> None:
        """Does ``work`` on a line, and on a new one whenever that is lost."""
        name, pause_s = work.__name__, RETRY_S
        while not self._stopping:
            try:
                line = open_line(self._store)
                try:
                    if name in self._lost:
                        log.warning("the line to the other processes is back")
                        self._lost.discard(name)
                    # Whatever was told while nobody listened is unknown.
                    self._live.stir()
                    pause_s = RETRY_S
                    work(line)
                finally:
                    line.close()
            except _lost_errors() as error:
                if name not in self._lost:
                    log.warning("the line to the other processes is lost: %s", type(error).__name__)
                    self._lost.add(name)
                self._live.stir()
                with self._turn:
                    self._turn.wait_for(lambda: self._stopping, pause_s)
                pause_s = min(2 * pause_s, RETRY_MAX_S)

    def _telling(self, line: Line) -> None:
        while True:
            with self._turn:
                self._turn.wait_for(lambda: self._stopping or self._waiting or self._spent)
                if not self._waiting and not self._spent:
                    return
                self._turn.wait_for(lambda: self._stopping, GATHER_S)
                runs, self._waiting = self._waiting, {}
                spent, self._spent = self._spent, {}
            line.tell(self._origin, runs, spent)

    def _hearing(self, line: Line) -> None:
        while not self._stopping:
            for origin, runs, spent in line.hear(HEAR_S):
                if origin == self._origin:
                    continue
                if spent:
                    self._noted(spent)
                    continue
                if runs and "" not in runs:
                    for run in runs:
                        self._live.note(run)
                else:
                    self._live.stir()
                self._heard()


def _lost_errors() -> tuple[type[Exception], ...]:
    """What the drivers raise; PostgreSQL's is an extra that need not be there."""
    try:
        import psycopg
    except ImportError:
        return OSError, SQLAlchemyError, sqlite3.Error
    return OSError, SQLAlchemyError, sqlite3.Error, psycopg.Error
