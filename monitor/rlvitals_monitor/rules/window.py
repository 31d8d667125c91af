"""What rules may look at: this step's values, the run's settings, and the last n observed values of each metric.

A value that is missing is no observation, and neither is NaN; the infinities are numbers. How far back a metric
is kept is what the rules ask for and no more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from rlvitals_monitor.rules.value import Number, Unknown

Json = Mapping[str, object]

BEFORE_ALL = -(2**63)
"""The step of a window that has not seen any."""

SLACK = 64
"""Values that wait to be dropped together."""

Statistic = Callable[[Sequence[float], Sequence[int]], float]
"""From the last n values (and for `slope` their steps) to one number; NaN where it has none."""


class _Ring:
    """The last ``depth`` observed values with their steps, at the end of lists that are cut now and then."""

    __slots__ = ("depth", "steps", "values")

    def __init__(self, depth: int) -> None:
        self.depth = depth
        self.steps: list[int] = []
        self.values: list[float] = []

    def add(self, step: int, value: float) -> None:
        self.steps.append(step)
        self.values.append(value)
        if len(self.values) > 2 * self.depth + SLACK:
            del self.steps[: -self.depth], self.values[: -self.depth]

    def kept(self) -> list[list[Any]]:
        return [self.steps[-self.depth :], self.values[-self.depth :]]


class Window:
    """One attempt up to one step. Only `push` changes it; everything else reads.

    ``depth`` is how many observed values of each metric are kept.
    """

    __slots__ = ("_known", "_rings", "config", "depth", "observed", "seen", "step", "time", "values")

    def __init__(self, depth: Mapping[str, int], config: Json | None = None) -> None:
        self.depth = dict(depth)
        self.config: Json = config or {}
        self.step = BEFORE_ALL
        self.time: datetime | None = None
        self.values: Mapping[str, float] = {}
        self.observed = 0
        self.seen: set[str] = set()
        self._rings = {name: _Ring(n) for name, n in depth.items()}
        self._known: dict[tuple[str, str, int], Number] = {}

    def push(self, step: int, time: datetime, values: Mapping[str, float]) -> None:
        """Moves on to the next step, which must be later than the last."""
        if step <= self.step:
            raise ValueError(f"step: expected a step after {self.step}, got {step}")
        self.step, self.time, self.values = step, time, values
        self.observed += 1
        self._known.clear()
        self.seen.update(values)
        for name, ring in self._rings.items():
            value = values.get(name)
            if value is not None and value == value:
                ring.add(step, value)

    def statistic(self, name: str, metric: str, count: int, compute: Statistic) -> Number:
        """``compute`` over the last ``count`` observed values, this step's included; computed once a step."""
        key = (name, metric, count)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._compute(metric, count, compute)
        return known

    def _compute(self, metric: str, count: int, compute: Statistic) -> Number:
        value = self.values.get(metric)
        if value is None:
            return Unknown(f"{metric} is missing")
        if value != value:
            return Unknown(f"{metric} is NaN")
        ring = self._rings[metric]
        held = min(len(ring.values), ring.depth)
        if held < count:
            return Unknown(f"{metric} has {held} of the {count} observed values that the rule looks at")
        return compute(ring.values[-count:], ring.steps[-count:] if compute is slope else ())

    def dump(self) -> dict[str, object]:
        """What the next process needs to go on; non-finite numbers are left to the codec."""
        rings = {name: ring.kept() for name, ring in self._rings.items() if ring.values}
        return {"step": self.step, "observed": self.observed, "seen": sorted(self.seen), "rings": rings}

    def restore(
        self, step: int, observed: int, seen: Iterable[str], rings: Mapping[str, tuple[list[int], list[float]]]
    ) -> None:
        """The inverse of `dump`, after the codec; metrics that no rule looks at any more are dropped."""
        self.step, self.observed, self.seen = step, observed, set(seen)
        for name, (steps, values) in rings.items():
            if name in self._rings:
                for at, value in zip(steps, values, strict=True):
                    self._rings[name].add(at, value)


def mean(values: Sequence[float], steps: Sequence[int]) -> float:
    return sum(values) / len(values)


def median(values: Sequence[float], steps: Sequence[int] = ()) -> float:
    """Of an even number of values the mean of the middle two."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def lowest(values: Sequence[float], steps: Sequence[int]) -> float:
    return min(values)


def highest(values: Sequence[float], steps: Sequence[int]) -> float:
    return max(values)


def mad(values: Sequence[float], steps: Sequence[int] = ()) -> float:
    """Median absolute deviation from the median, without the 1.4826; NaN around an infinite median."""
    middle = median(values)
    return median([abs(value - middle) for value in values]) if math.isfinite(middle) else math.nan


def slope(values: Sequence[float], steps: Sequence[int]) -> float:
    """Least squares over (step, value); NaN for one value or where an infinity is among them."""
    x_mean, y_mean = sum(steps) / len(steps), sum(values) / len(values)
    spread = sum((x - x_mean) * (x - x_mean) for x in steps)
    if spread == 0:
        return math.nan
    return sum((x - x_mean) * (y - y_mean) for x, y in zip(steps, values, strict=True)) / spread


STATISTICS: dict[str, Statistic] = {
    "mean": mean,
    "median": median,
    "lowest": lowest,
    "highest": highest,
    "mad": mad,
    "slope": slope,
}
