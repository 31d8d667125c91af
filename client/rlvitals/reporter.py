"""What a training loop holds: report, text, histogram, event, phase; one append each, and never an exception."""

from __future__ import annotations

import atexit
import os
import struct
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from threading import get_ident
from time import perf_counter
from typing import Any, Protocol, TypeAlias, cast

from rlvitals import config, guard, notices
from rlvitals.contract import codec
from rlvitals.contract.command import Command, CommandKind, Knob, Outcome
from rlvitals.contract.evaluation import is_evaluation
from rlvitals.contract.report import (
    Event,
    EventKind,
    Extreme,
    Heartbeat,
    Histogram,
    Phase,
    RunInfo,
    Text,
    TokenDetail,
)
from rlvitals.control import Control
from rlvitals.drops import Drops
from rlvitals.follow import Taken, commands_applied, commands_taken
from rlvitals.guard import Guard, kept
from rlvitals.journal import Journal, Writer
from rlvitals.part import ALONE, Part
from rlvitals.record import Kind
from rlvitals.sender import Sender
from rlvitals.settings import Mode, Settings
from rlvitals.spool import journal_folder
from rlvitals.verdict import ControlLimits

OWN_METRICS = ("rlvitals.overhead", "rlvitals.dropped", "rlvitals.errors", "rlvitals.spool_bytes")
PENDING_MAX = 64
THREADS_MAX = 256
COMPLETION_CHARS_MAX = 64 * 1024
PROMPT_CHARS_MAX = 16 * 1024
TOKEN_IDS_MAX = 32 * 1024
BINS_MAX = 1024

_NUMBERS = frozenset({int, float})


class Measured(Protocol):
    """What probes hand over; a tuple (values, missing, extremes) does as well."""

    values: dict[str, float]
    missing: dict[str, str]
    extremes: dict[str, Extreme]


Resolved: TypeAlias = Measured | tuple[Mapping[str, float], Mapping[str, str], Mapping[str, Extreme]]


@dataclass(slots=True)
class _Pending:
    """A step whose values are still on their way from the device."""

    journal: Journal
    step: int
    time_s: float
    ready: Callable[[], bool]
    resolve: Callable[[], Any]


class Reporter:
    """Thread-safe and fork-safe. Every method returns at once; none raises (see `rlvitals.guard`).

    ``run`` and ``attempt`` say whose journal is written; ``control`` is the mailbox for commands. A forked child
    that reports does so as an attempt of its own; so does a step counter that goes back. ``part`` is this
    process's where several write one attempt.
    """

    def __init__(
        self,
        settings: Settings,
        run: RunInfo,
        *,
        limits: ControlLimits | None = None,
        part: Part = ALONE,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.settings = settings
        self.run = run
        self.part = part
        self.attempt = ""
        self.last_step: int | None = None
        self.current_phase = Phase.STARTING
        self.texts_cut = 0
        self._clock = clock
        self._on = settings.mode is not Mode.DISABLED
        self._drops = Drops()
        self._lock = threading.RLock()
        self._draining = threading.Lock()
        self._pending: deque[_Pending] = deque()
        self._steps: dict[int, int] = {}
        self._met = threading.local()
        self._turn = 0, 0
        self._spent_s = 0.0
        self._reason = "start"
        self._started = False
        self.control = Control(
            journal_command=self._journal_command,
            journal_outcome=self._journal_outcome,
            known=lambda: commands_taken(settings.spool, run.id),
            earlier=lambda: [(taken.command, taken.step) for taken in commands_applied(settings.spool, run.id)],
            capabilities=lambda: self.run.capabilities,
            limits=limits
            or ControlLimits(longest_pause_s=settings.longest_pause_s, fail_open_s=settings.fail_open_s),
            obeys=part.obeys,
        )
        self._sender = self._new_sender()
        self._journal = self._new_journal()
        if self._on:
            _LIVE.add(self)

    @classmethod
    def disabled(cls) -> Reporter:
        """A reporter that does nothing."""
        return cls(Settings(mode=Mode.DISABLED), RunInfo(id="disabled"))

    @property
    def enabled(self) -> bool:
        return self._on

    @kept(None)
    def report(
        self,
        step: int,
        values: Mapping[str, Any],
        *,
        missing: Mapping[str, str] | None = None,
        extremes: Mapping[str, Extreme] | None = None,
        time_s: float | None = None,
    ) -> None:
        """Journals one optimizer step: metric name → number (int, float, 0-d array or tensor).

        None means missing; what is no number is dropped and counted, the rest kept. NaN and infinities are values.
        A record of evaluation metrics alone (see `rlvitals.contract.evaluation`) moves no step counter.
        ``time_s`` is seconds since the Unix epoch. A CUDA tensor would be waited for: use `report_when` for those.
        """
        if not self._on:
            return
        began = perf_counter()
        if type(step) is not int:
            step = int(step)
        if is_evaluation(values):
            self._write_evaluation(step, values, missing, extremes, time_s)
            self._spent_s += perf_counter() - began
            return
        me, turn = get_ident(), self._turn
        if me != turn[0] or step < turn[1] or self._pending:
            self._turn_to(me, step)
        self._turn = me, step
        self.last_step = step
        if time_s is None:
            time_s = self._clock()
        self._write_step(self._journal, step, time_s, values, missing, extremes)
        self._spent_s += perf_counter() - began

    @kept(None)
    def report_when(
        self, step: int, ready: Callable[[], bool], resolve: Callable[[], Resolved], *, time_s: float | None = None
    ) -> None:
        """Journals a step once ``ready()`` is true; ``resolve()`` then gives its values without waiting.

        Both are asked from the sender's thread, and from here at the next step, in the order of the calls. What is
        not ready when the process is killed is lost.
        """
        if not self._on:
            return
        began = perf_counter()
        self._turn_to(get_ident(), int(step))
        self.last_step = int(step)
        if len(self._pending) >= PENDING_MAX:
            self._drops.add("device")
            notices.once(
                "device", f"{PENDING_MAX} steps wait for their values from the device; newer ones are left out"
            )
        else:
            moment = self._clock() if time_s is None else time_s
            self._pending.append(_Pending(self._journal, int(step), moment, ready, resolve))
        self._spent_s += perf_counter() - began

    @kept(None)
    def text(
        self,
        step: int,
        sample: int,
        completion: str,
        *,
        prompt: str = "",
        token_ids: Sequence[int] = (),
        reward: float | None = None,
        truncated: bool | None = None,
        invalid_utf8: int | None = None,
        why: str = "reservoir",
        tokens: TokenDetail | None = None,
    ) -> None:
        """Journals one completion, cut to the bounds above. ``sample`` is its row in the step's batch.

        With ``RLVITALS_TEXTS=0`` none is kept, whoever tells it.
        """
        if not self.settings.texts:
            return
        text = Text(
            seq=0,
            step=int(step),
            sample=int(sample),
            completion=completion[:COMPLETION_CHARS_MAX],
            prompt=prompt[:PROMPT_CHARS_MAX],
            token_ids=tuple(int(t) for t in token_ids[:TOKEN_IDS_MAX]),
            reward=None if reward is None else float(reward),
            truncated=None if truncated is None else bool(truncated),
            invalid_utf8=None if invalid_utf8 is None else int(invalid_utf8),
            why=why[:32],
            tokens=tokens,
        )
        cut = len(completion) > COMPLETION_CHARS_MAX or len(prompt) > PROMPT_CHARS_MAX
        self.texts_cut += cut or len(token_ids) > TOKEN_IDS_MAX
        self._append(Kind.TEXT, text)

    @kept(None)
    def histogram(self, step: int, metric: str, edges: Sequence[float], counts: Sequence[int]) -> None:
        """Journals counts between edges; ``len(edges) == len(counts) + 1``, at most 1024 bins."""
        if len(edges) != len(counts) + 1 or len(counts) > BINS_MAX:
            raise ValueError(
                f"histogram {metric}: expected n + 1 edges for n ≤ {BINS_MAX} counts, got {len(edges)}"
            )
        bounds, bins = tuple(float(e) for e in edges), tuple(int(c) for c in counts)
        self._append(Kind.HISTOGRAM, Histogram(seq=0, step=int(step), metric=metric, edges=bounds, counts=bins))

    @kept(None)
    def event(self, kind: EventKind | str, step: int | None = None, **payload: object) -> None:
        """Journals that something happened; payload values become plain JSON, secrets are removed."""
        where = None if step is None else int(step)
        moment = self._clock()
        told = config.clean(payload)
        self._append(Kind.EVENT, Event(seq=0, time_s=moment, kind=EventKind(kind), step=where, payload=told))

    @kept(None)
    def phase(self, phase: Phase | str) -> None:
        """Says what the loop is doing now, so that a long evaluation is not taken for a stall."""
        if phase != self.current_phase or not self._started:
            self.current_phase = Phase(phase)
            if not self.part.leads:
                return
            self.event(EventKind.PHASE, self.last_step, phase=self.current_phase.value)

    @kept(None)
    def describe(
        self,
        *,
        name: str | None = None,
        framework: str | None = None,
        model: str | None = None,
        config: object = None,
        capabilities: Mapping[str, str] | None = None,
        knobs: Mapping[str, Knob] | None = None,
        tags: Sequence[str] | None = None,
    ) -> None:
        """Adds to what is known about the run; ``config``, ``capabilities`` and ``knobs`` are merged by key."""
        facts = {
            "name": name,
            "framework": framework,
            "model": model,
            "tags": None if tags is None else tuple(tags),
        }
        changed: dict[str, Any] = {key: value for key, value in facts.items() if value is not None}
        if config is not None:
            changed["config"] = {**self.run.config, **clean_config(config)}
        if capabilities is not None:
            changed["capabilities"] = {**self.run.capabilities, **capabilities}
        if knobs is not None:
            changed["knobs"] = {**self.run.knobs, **knobs}
        self.run = replace(self.run, **changed)
        self._journal.describe(self.run)

    @kept(None)
    def knob(
        self,
        name: str,
        act: Callable[[float], object],
        *,
        low: float,
        high: float,
        get: Callable[[], float] | None = None,
        value: float | None = None,
        max_change: float | None = None,
        cool_down_steps: int = 3,
    ) -> None:
        """Lets a setting of your own be changed while it trains; call it on every rank, with the same arguments.

        ``act`` is called with the new value between two steps; ``get`` reads it back, or ``value`` says what it is
        now. It never leaves ``low`` … ``high``; one command moves it by ``max_change`` at most, and no other does
        for ``cool_down_steps``. What ``act`` raises refuses the command.
        """
        knob = Knob(low=low, high=high, value=value, max_change=max_change, cool_down_steps=cool_down_steps)
        told = self.control.knobs.add(name, act, get, knob)
        self.describe(knobs=told, capabilities={CommandKind.SET_KNOB.value: ""})

    def spent(self, seconds: float) -> None:
        """Adds time that an integration's own work took in the training thread to ``rlvitals.overhead``."""
        self._spent_s += seconds

    @kept(False)
    def flush(self, timeout_s: float = 5.0, *, patient: bool = True) -> bool:
        """Waits until the service has stored all, at most ``timeout_s``; offline: until all is on disk.

        Impatient: gives up at the first try that fails, for the reason in `last_error`.
        """
        return self._sender.flush(timeout_s, patient=patient) if self._on and self._started else True

    @property
    def last_error(self) -> str:
        """Why the service last took nothing, "" where that never happened."""
        return self._sender.last_error

    @kept(None)
    def close(self, phase: Phase | str = Phase.FINISHED) -> None:
        """Says how it ended, sends for ``exit_flush_s`` at most, and leaves the rest to `rlvitals sync`."""
        if not self._on:
            return
        if self._started:
            self.phase(phase)
        self._on = False
        self.control.close()
        _LIVE.discard(self)
        if self._started:
            self._sender.close(self.settings.exit_flush_s)

    @property
    def counters(self) -> Mapping[str, float]:
        """Figures about ourselves: ``dropped.<reason>``, errors, spool bytes, seqs, receipts."""
        reasons = {f"dropped.{reason}": float(n) for reason, n in self._drops.reasons.items()}
        own = {
            "seq": float(self._journal.seq),
            "dropped": float(self._drops.total),
            "errors": float(guard.errors),
            "texts_cut": float(self.texts_cut),
            "pending": float(len(self._pending)),
            "spool_bytes": float(
                self._journal.appended_bytes - self._journal.acked_bytes + self._sender.leftover_bytes
            ),
        }
        return {**own, **self._sender.counters(), **reasons}

    # -- journal -----------------------------------------------------------------------------------------------

    def _turn_to(self, me: int, step: int) -> None:
        """All that `report` need not do while one thread goes on from step to step.

        Each thread has its own step counter, so that one which lags behind the others is no rewind.
        """
        if not self._started:
            self._begin()
        with self._lock:
            thread, reached = self._turn
            self._steps[thread] = reached
            if not hasattr(self._met, "before"):  # a new thread may bear the number of one that has ended
                self._steps.pop(me, None)
                self._met.before = True
            last = self._steps.get(me)
            if last is not None and step < last:
                self._rewind(last, step)
            elif last is None and len(self._steps) >= THREADS_MAX:
                self._steps.clear()
            self._turn = me, step
        if self._pending:
            self._settle_ready()

    def _write_step(
        self,
        journal: Journal,
        step: int,
        time_s: float,
        values: Mapping[str, Any],
        missing: Mapping[str, str] | None,
        extremes: Mapping[str, Extreme] | None,
    ) -> None:
        if not _NUMBERS.issuperset(map(type, values.values())):
            values, missing = self._numbers(values, missing)
        unsent = journal.appended_bytes - journal.acked_bytes + self._sender.leftover_bytes
        own = (self._spent_s, self._drops.total, guard.errors, unsent)
        self._spent_s = 0.0
        try:
            journal.step(step, time_s, values, own, missing=missing, extremes=extremes)
        except struct.error:
            values, missing = self._numbers(values, missing)
            journal.step(step, time_s, values, own, missing=missing, extremes=extremes)

    def _write_evaluation(
        self,
        step: int,
        values: Mapping[str, Any],
        missing: Mapping[str, str] | None,
        extremes: Mapping[str, Extreme] | None,
        time_s: float | None,
    ) -> None:
        """Beside the steps: one that comes late, or before all training, is no rewind."""
        if not self._started:
            self._begin()
        moment = self._clock() if time_s is None else time_s
        self._write_step(self._journal, step, moment, values, missing, extremes)

    def _numbers(
        self, values: Mapping[str, Any], missing: Mapping[str, str] | None
    ) -> tuple[dict[str, float], Mapping[str, str]]:
        """Numbers as floats; None becomes missing; all else is dropped and counted."""
        found: dict[str, float] = {}
        absent: dict[str, str] = {}
        for name, value in values.items():
            if value is None:
                absent[name] = "not measured"
                continue
            number = _as_number(value)
            if number is None:
                self._drops.add("not a number")
                notices.once(
                    f"value:{name}", f"metric {name}: expected a number, got {type(value).__name__}; left out"
                )
            else:
                found[name] = number
        return found, {**absent, **(missing or {})}

    def _append(self, kind: Kind, record: Text | Histogram | Event | Outcome | Taken) -> None:
        if not self._on:
            return
        began = perf_counter()
        if not self._started:
            self._begin()
        facts = codec.encode(record)
        self._journal.append(kind, lambda seq: codec.dumps({**facts, "seq": seq}))
        self._spent_s += perf_counter() - began

    def _journal_command(self, command: Command, step: int) -> None:
        self._append(Kind.COMMAND, Taken(command=command, step=step))

    def _journal_outcome(self, outcome: Outcome) -> None:
        self._append(Kind.OUTCOME, outcome)

    def _begin(self) -> None:
        """The first record of an attempt: who, where, why; and the sender's thread."""
        with self._lock:
            if self._started:
                return
            self._started = True
            self._sender.start()
        if self.settings.mode is Mode.ONLINE:
            notices.once(f"run:{self.run.id}", f"run {self.run.id}: {self.settings.url}/ui/run/{self.run.id}")
        self.event(EventKind.ATTEMPT, None, reason=self._reason, pid=os.getpid(), host=_host())

    def _rewind(self, last: int, step: int) -> None:
        with self._lock:
            self._steps.clear()
            self._reason = "rewind"
            self._journal = self._new_journal()
        self.event(EventKind.ATTEMPT, step, reason="rewind", before=last, pid=os.getpid(), host=_host())

    def _new_journal(self) -> Journal:
        first = not self.attempt and self.part.attempt
        self.attempt = self.part.attempt if first else os.urandom(8).hex()
        writer = Writer(run=self.run, attempt=self.attempt, writer=self.part.writer)
        journal = Journal(
            journal_folder(self.settings.spool, self.run.id, writer.folder),
            writer,
            own=OWN_METRICS,
            drops=self._drops,
            segment_bytes=self.settings.segment_bytes,
            memory_bytes=self.settings.memory_bytes,
        )
        self._sender.follow(journal)
        return journal

    def _new_sender(self) -> Sender:
        return Sender(
            self.settings, self.control, self._drops, heartbeat=self._heartbeat, settle=self._settle_ready
        )

    def _heartbeat(self) -> Heartbeat | None:
        if not self.part.leads:
            return None
        over = self.current_phase in (Phase.FINISHED, Phase.FAILED)  # also one that ended while it was paused
        phase = Phase.PAUSED if self.control.paused and not over else self.current_phase
        return Heartbeat(time_s=self._clock(), phase=phase, last_step=self.last_step)

    # -- values that are still on a device ---------------------------------------------------------------------

    def _settle_ready(self) -> bool:
        """Journals pending steps that are ready, in order; True if none is left. Waits for no other thread."""
        if self._draining.acquire(blocking=False):
            try:
                while self._pending and self._settle_first(self._pending[0]):
                    self._pending.popleft()
            finally:
                self._draining.release()
        return not self._pending

    def _settle_first(self, first: _Pending) -> bool:
        """False if it is not ready yet; one that fails counts as lost and is done with."""
        with Guard("report_when") as watch:
            if not first.ready():
                return False
            values, missing, extremes = _parts(first.resolve())
            self._write_step(first.journal, first.step, first.time_s, values, missing, extremes)
        if watch.failed:
            self._drops.add("device")
        return True

    def _forked(self) -> None:
        self._lock, self._draining = threading.RLock(), threading.Lock()
        self._journal.abandon()
        self._sender.abandon()
        self._pending.clear()
        self._steps.clear()
        self._turn = 0, 0
        self._reason, self._started = "fork", False
        self.control.forked()
        self._sender = self._new_sender()
        self._journal = self._new_journal()

    def _exit(self) -> None:
        """The interpreter ends and nobody called `close`: an error that reached the top means failed."""
        interactive = hasattr(sys, "ps1") or "IPython" in sys.modules
        failed = getattr(sys, "last_value", None) is not None and not interactive
        self.close(Phase.FAILED if failed else Phase.FINISHED)


def clean_config(facts: object) -> dict[str, object]:
    return config.clean(facts)


def _as_number(value: Any) -> float | None:
    if isinstance(value, (str, bytes, bytearray)):
        return None
    if hasattr(value, "detach"):
        value = guard.attempt(value.detach)
    return guard.attempt(float, value)


def _parts(resolved: Any) -> tuple[Mapping[str, Any], Mapping[str, str], Mapping[str, Extreme]]:
    if isinstance(resolved, tuple):
        return cast("tuple[Mapping[str, Any], Mapping[str, str], Mapping[str, Extreme]]", resolved)
    return resolved.values, resolved.missing, resolved.extremes


def _host() -> str:
    return os.uname().nodename if hasattr(os, "uname") else ""


_LIVE: weakref.WeakSet[Reporter] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for reporter in list(_LIVE):
        with Guard("fork"):
            reporter._forked()


def _at_exit() -> None:
    for reporter in list(_LIVE):
        with Guard("exit"):
            reporter._exit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
atexit.register(_at_exit)
