"""Steps of a run ↔ places on an axis that is told now and then, and read between. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """``at[i]`` is the place of ``step[i]``; both ascend. Without ``step`` a step is its own place."""

    step: Ints | None = None
    at: Floats | None = None

    @classmethod
    def of(cls, told: Sequence[tuple[int, float]]) -> Scale:
        """(step, place) in order of steps. What is no number is passed over; a count that falls stays where it
        was, so that the axis never turns back."""
        known = [(step, at) for step, at in told if math.isfinite(at)]
        step = np.array([s for s, _ in known], np.int64)
        at = np.maximum.accumulate(np.array([a for _, a in known], np.float64)) if known else np.empty(0)
        return cls(step=step, at=at)

    @property
    def empty(self) -> bool:
        return self.step is not None and not len(self.step)

    def places(self, steps: Sequence[int] | Ints) -> Floats:
        """NaN for a step outside of those that were told."""
        wanted = np.asarray(steps, np.float64)
        if self.step is None or self.at is None:
            return wanted
        if not len(self.step):
            return np.full(len(wanted), np.nan)
        return np.interp(wanted, self.step.astype(np.float64), self.at, left=np.nan, right=np.nan)

    def steps_between(self, first: float | None, last: float | None) -> tuple[int | None, int | None]:
        """The steps whose places lie there, and one told place more on either side; None is open."""
        if self.step is None or self.at is None:
            return _bounded(first, math.floor), _bounded(last, math.ceil)
        if not len(self.step):
            return None, None
        low = None if first is None else self.step[max(int(np.searchsorted(self.at, first, "right")) - 1, 0)]
        high = (
            None
            if last is None
            else self.step[min(int(np.searchsorted(self.at, last, "left")), len(self.step) - 1)]
        )
        return None if low is None else int(low), None if high is None else int(high)


STEPS = Scale()
_WIDEST = 2**53


def _bounded(place: float | None, towards: Callable[[float], int]) -> int | None:
    return None if place is None else max(-_WIDEST, min(towards(place), _WIDEST))
