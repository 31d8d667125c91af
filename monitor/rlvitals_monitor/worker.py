"""The service's one background loop: judge new steps, pass transitions on, expire what nobody decided.

Every piece of work is its own transaction, and a piece that fails is logged and left for later: a run whose data
cannot be judged stops neither the others nor the loop. Several processes may run a worker on one database.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta, timezone

from sqlalchemy import Connection

from rlvitals.contract.alert import AlertState, Transition
from rlvitals_monitor.alerts.engine import STEPS_A_CALL, Cache, advance
from rlvitals_monitor.alerts.rulebook import RuleBook
from rlvitals_monitor.alerts.settings import RuleSettings
from rlvitals_monitor.alerts.vigil import Vigil
from rlvitals_monitor.control import handover, mailbox
from rlvitals_monitor.control.bounds import Limits
from rlvitals_monitor.control.helm import Helm
from rlvitals_monitor.control.policy import Policies
from rlvitals_monitor.janitor import Janitor
from rlvitals_monitor.live import Live
from rlvitals_monitor.notify import dispatch
from rlvitals_monitor.notify.channel import Channels
from rlvitals_monitor.rules.rule import Rule
from rlvitals_monitor.store import alerts, commands, evaluations, links
from rlvitals_monitor.store.engine import Store

TICK_S = 1.0
"""How often an idle worker looks for work that other processes left."""
ATTEMPTS_A_TICK = 64
ROUTED_A_ROUND = 50
"""Transitions in one transaction: reports wait no longer than it takes."""
ROUNDS_A_TICK = 20
"""Most batches of steps of one attempt in one tick, so that a long backlog does not starve the others."""
NEWS_FOR = timedelta(hours=24)
"""A transition older than this (a journal that was sent late) is recorded but announced to nobody."""
REST_AFTER_FAILURE = timedelta(seconds=30)
"""How long an attempt that could not be judged is left alone."""
SWEEP_EVERY = timedelta(hours=1)

log = logging.getLogger(__name__)


class Worker:
    """``start`` it once, ``wake`` it after each commit of steps, ``stop`` it at the end; or just call ``tick``.

    It judges by ``rules``, or else by those of ``book``, which it reads again when its files change. ``channels``
    may be a question that is asked anew each time. ``told`` is called when transitions were routed to channels, so
    that whoever delivers looks at once; ``measured`` gets each piece of work's seconds and whether it went well.
    """

    def __init__(
        self,
        store: Store,
        *,
        rules: Sequence[Rule] | None = None,
        book: RuleBook | None = None,
        channels: Channels | Callable[[], Channels] | None = None,
        policies: Policies | None = None,
        limits: Limits | None = None,
        live: Live | None = None,
        measured: Callable[[str, float, bool], None] = lambda what, took_s, well: None,
        told: Callable[[], None] = lambda: None,
        clock: Callable[[], datetime] = lambda: datetime.now(timezone.utc),
    ) -> None:
        self._store, self._live, self._told, self._clock = store, live, told, clock
        self._measured = measured
        self._book = book or (RuleBook.of(RuleSettings(), clock(), store) if rules is None else None)
        self.rules = self._book.rules if self._book is not None else tuple(rules or ())
        fixed = channels if isinstance(channels, Channels) else Channels()
        self._channels = channels if callable(channels) else lambda: fixed
        self._policies, self._limits = policies or Policies(), limits or Limits()
        self._helm = Helm(self._policies, self._limits)
        self._cache, self._vigil, self._janitor = Cache(), Vigil(), Janitor()
        self._resting: dict[int, datetime] = {}
        self._swept_at: datetime | None = None
        self._turn = threading.Condition()
        self._woken = False
        self._stopping = False
        self._thread: threading.Thread | None = None
        self.failures = 0
        self.failing: dict[str, datetime] = {}
        """What of each round's work fails, and since when."""
        self.beat_at = self._clock()
        """When a piece of work last ended."""

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="rlvitals-worker", daemon=True)
        self._thread.start()

    def wake(self, run: str = "") -> None:
        """Never blocks for long and never fails: the loop itself finds out which runs have new steps."""
        with self._turn:
            self._woken = True
            self._turn.notify_all()

    def stop(self, timeout_s: float = 10.0) -> None:
        """Lets the piece of work at hand end. Safe to call twice, or without a start."""
        with self._turn:
            self._stopping = True
            self._turn.notify_all()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout_s)

    def tick(self, now: datetime) -> int:
        """One round of all work; how many transitions were recorded."""
        self._do("looking at the rule files", lambda: self._reload(now))
        recorded = sum(self._judge_safely(number, run, now) for number, run in self._behind(now))
        self._do("watching over silent runs", lambda: self._watch(now))
        self._do("steering", lambda: self._steer(now))
        self._do("routing", lambda: self._route(now))
        self._do("expiring", lambda: self._expire(now))
        self._do("forgetting old links", lambda: self._sweep(now))
        self._do("removing what was deleted or came of age", lambda: self._remove(now))
        return recorded

    def _reload(self, now: datetime) -> None:
        if self._book is not None:
            self.rules = self._book.refresh(now)

    def _run(self) -> None:
        while True:
            with self._turn:
                self._turn.wait_for(lambda: self._stopping or self._woken, TICK_S)
                if self._stopping:
                    return
                self._woken = False
            self.tick(self._clock())

    def _behind(self, now: datetime) -> list[tuple[int, str]]:
        self._resting = {number: until for number, until in self._resting.items() if until > now}
        found: list[tuple[int, str]] = []

        def look() -> None:
            with self._store.read() as connection:
                found.extend(evaluations.behind(connection, ATTEMPTS_A_TICK + len(self._resting)))

        self._do("looking for new steps", look)
        return [(number, run) for number, run in found if number not in self._resting]

    def _judge_safely(self, number: int, run: str, now: datetime) -> int:
        recorded: list[Transition] = []
        if not self._guarded(f"judging run {run}", lambda: self._judge(number, now, recorded)):
            self._cache.forget(number)
            self._resting[number] = now + REST_AFTER_FAILURE
        if recorded and self._live is not None:
            self._live.publish(run)
        return len(recorded)

    def _judge(self, number: int, now: datetime, recorded: list[Transition]) -> None:
        for _ in range(ROUNDS_A_TICK):
            with self._store.begin() as connection:
                advanced = advance(connection, number, self.rules, now, cache=self._cache)
            self.beat_at = self._clock()
            recorded += advanced.transitions
            if advanced.steps < STEPS_A_CALL:
                return

    def _watch(self, now: datetime) -> None:
        for run in {transition.alert.run for transition in self._vigil.look(self._store, now)}:
            if self._live is not None:
                self._live.publish(run)

    def _steer(self, now: datetime) -> None:
        for run in self._helm.look(self._store, now, self._guarded):
            if self._live is not None:
                self._live.publish(run)

    def _route(self, now: datetime) -> None:
        for _ in range(ROUNDS_A_TICK):
            with self._store.begin() as connection:
                found = alerts.unrouted(connection, ROUTED_A_ROUND)
            if not found:
                return
            for transition in found:
                self._propose(transition, now)
            asked, runs = {transition.id for transition in found}, dict[str, None]()
            with self._store.begin() as connection:
                waiting = [t for t in alerts.unrouted(connection, ROUTED_A_ROUND) if t.id in asked]
                for transition in waiting:
                    if self._pass_on(connection, transition, now):
                        runs[transition.alert.run] = None
                alerts.mark_routed(connection, [transition.id for transition in waiting])
            self._tell(runs)
            if len(waiting) < ROUTED_A_ROUND:
                return

    def _propose(self, transition: Transition, now: datetime) -> None:
        """One run in one transaction, since a command is audited and the audit's lock is taken after a run's."""
        if now - transition.at > NEWS_FOR or transition.after is not AlertState.FIRING:
            return
        if transition.alert.proposal is None:
            return

        def ask() -> None:
            with self._store.begin() as connection:
                mailbox.propose(connection, transition, self._policies, now, self._limits)

        self._guarded(f"proposing what {transition.alert.rule} would do", ask)

    def _pass_on(self, connection: Connection, transition: Transition, now: datetime) -> bool:
        """Deliveries of one transition, or none: a fault in one holds up no other."""
        if now - transition.at > NEWS_FOR:
            return False

        def pass_on() -> None:
            with connection.begin_nested():
                dispatch.route(connection, transition, self._channels(), now)

        return self._guarded(f"routing {transition.id}", pass_on)

    def _expire(self, now: datetime) -> None:
        with self._store.read() as connection:
            runs = commands.overdue_runs(connection, now)
        for run in runs:
            with self._store.begin() as connection:
                handover.expire(connection, run, now)
            if self._live is not None:
                self._live.publish(run)

    def _sweep(self, now: datetime) -> None:
        if self._swept_at is not None and now - self._swept_at < SWEEP_EVERY:
            return
        self._swept_at = now
        with self._store.begin() as connection:
            links.sweep(connection, now)

    def _remove(self, now: datetime) -> None:
        for run in self._janitor.look(self._store, now):
            if self._live is not None:
                self._live.publish(run)

    def _tell(self, runs: Iterable[str]) -> None:
        known = list(runs)
        if self._live is not None:
            for run in known:
                self._live.publish(run)
        if known:
            self._told()

    def _do(self, what: str, work: Callable[[], None]) -> None:
        """One piece of each round, of which it is known how long it has failed."""
        if self._guarded(what, work):
            self.failing.pop(what, None)
        else:
            self.failing.setdefault(what, self._clock())
        self.beat_at = self._clock()

    def _guarded(self, what: str, work: Callable[[], None]) -> bool:
        began, well = time.perf_counter(), False
        try:
            work()
            well = True
        except Exception:  # the worker's one edge: nothing may end the loop
            self.failures += 1
            log.exception("%s failed and will be tried again", what)
        self._measured(what, time.perf_counter() - began, well)
        return well
