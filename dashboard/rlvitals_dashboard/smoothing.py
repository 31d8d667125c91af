"""A smooth line through a noisy one, as a fold: what was smoothed goes on where new values come in. Pure.

A value that is NaN, infinite or missing breaks the line: nothing is smoothed across it, and what comes after it
begins anew, so that a smooth line never says that all was well where it was not.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True, kw_only=True)
class Smoothing:
    """``weight`` of what was before (exponential moving average), or the ``window`` of a running median."""

    key: str
    weight: float = 0.0
    window: int = 0

    def fold(
        self, values: Iterable[float | None], memory: tuple[float, ...] = ()
    ) -> tuple[list[float | None], tuple[float, ...]]:
        """The smoothed values, and what to go on with. None and what is not finite are a break."""
        smooth: list[float | None] = []
        for value in values:
            if value is None or not math.isfinite(value):
                memory = ()
                smooth.append(None)
                continue
            memory = self._next(value, memory)
            smooth.append(median(memory) if self.window else memory[0])
        return smooth, memory

    def _next(self, value: float, memory: tuple[float, ...]) -> tuple[float, ...]:
        if self.window:
            return (*memory, value)[-self.window :]
        return (self.weight * memory[0] + (1 - self.weight) * value,) if memory else (value,)


SMOOTHINGS = (
    Smoothing(key="ema-0.6", weight=0.6),
    Smoothing(key="ema-0.9", weight=0.9),
    Smoothing(key="ema-0.98", weight=0.98),
    Smoothing(key="median-5", window=5),
    Smoothing(key="median-21", window=21),
)
"""By their key in the address; the average begins at the first value, not at zero."""
_BY_KEY = {smoothing.key: smoothing for smoothing in SMOOTHINGS}


def find_smoothing(key: str) -> Smoothing | None:
    return _BY_KEY.get(key)
