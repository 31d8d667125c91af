"""Where a step's time goes: seconds in each of its phases, by the caller's clock."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from enum import Enum

from rlvitals.contract.report import Extreme
from rlvitals.probes.tally import Tally


class StepPhase(str, Enum):
    """The parts of a step of reinforcement learning."""

    ROLLOUT = "rollout"
    REWARD = "reward"
    REFERENCE = "reference"
    UPDATE = "update"
    EVAL = "eval"
    CHECKPOINT = "checkpoint"


class PhaseClock:
    """Adds up seconds by phase. A phase within another takes its time from the outer one, so none counts twice.

    ``phases`` are those that the caller will tell of: they read 0 in a step in which they did not happen, the
    others say nothing. Time on a GPU counts for the phase in which the host waits for it. For one thread.
    """

    def __init__(
        self, phases: Collection[StepPhase] = tuple(StepPhase), *, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._clock = clock
        self._seconds = dict.fromkeys(phases, 0.0)
        self._open: list[StepPhase] = []
        self._since = clock()

    @contextmanager
    def during(self, phase: StepPhase) -> Iterator[None]:
        """Counts what happens inside for ``phase``."""
        self.enter(phase)
        try:
            yield
        finally:
            self.leave(phase)

    def enter(self, phase: StepPhase) -> None:
        self._count()
        self._open.append(phase)

    def leave(self, phase: StepPhase) -> None:
        """Ends ``phase`` and all within it; nothing where it was not entered."""
        self._count()
        if phase in self._open:
            last = len(self._open) - 1 - self._open[::-1].index(phase)
            del self._open[last:]

    def restart(self) -> None:
        """Forgets all phases and seconds: an error has left them as they were, or another training begins."""
        self._open.clear()
        self._seconds = dict.fromkeys(self._seconds, 0.0)
        self._since = self._clock()

    def take(self) -> Tally:
        """The seconds since the last time; phases that are open go on into the next step."""
        self._count()
        taken = {f"phase.{phase.value}": Extreme(value=seconds) for phase, seconds in self._seconds.items()}
        self._seconds = dict.fromkeys(self._seconds, 0.0)
        return Tally(maxima=taken)

    def _count(self) -> None:
        now = self._clock()
        if self._open:
            phase = self._open[-1]
            self._seconds[phase] = self._seconds.get(phase, 0.0) + max(0.0, now - self._since)
        self._since = now
