"""The last steps of the metric that rang, and as one line of signs. Pure.

NaN, both infinities and a missing value have signs of their own. A sign of several steps shows what is strangest
among them, so that no NaN, no infinity and no spike is lost; a missing step is, among measured ones.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

LEVELS = "▁▂▃▄▅▆▇█"
NAN, ABOVE, BELOW, MISSING = "×", "↑", "↓", "·"
WIDTH = 32

Value = float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """``values[i]`` is of step ``steps[i]``: NaN and infinities as they are, None where it is missing."""

    metric: str
    steps: tuple[int, ...]
    values: tuple[Value, ...]
    threshold: float | None = None

    @property
    def finite(self) -> tuple[float, ...]:
        return tuple(value for value in self.values if value is not None and math.isfinite(value))


def sparkline(trend: Trend, width: int = WIDTH) -> str:
    """At most ``width`` signs, oldest first; empty where there is no step."""
    finite = trend.finite
    usual = statistics.median(finite) if finite else 0.0
    shown = [_strangest(part, usual) for part in _parts(trend.values, width)]
    low, high = (min(finite), max(finite)) if finite else (0.0, 0.0)
    return "".join(_sign(value, low, high) for value in shown)


def marks(trend: Trend) -> list[tuple[str, str]]:
    """(sign, what it stands for) of those that the line has beside its levels."""
    named = [(NAN, "NaN"), (ABOVE, "+Inf"), (BELOW, "-Inf"), (MISSING, "missing")]
    line = sparkline(trend)
    return [(sign, name) for sign, name in named if sign in line]


def _parts(values: Sequence[Value], width: int) -> list[Sequence[Value]]:
    count = min(len(values), width)
    edges = [len(values) * i // count for i in range(count + 1)] if count else []
    return [values[edges[i] : edges[i + 1]] for i in range(count)]


def _strangest(values: Sequence[Value], usual: float) -> Value:
    return max(values, key=lambda value: _strangeness(value, usual))


def _strangeness(value: Value, usual: float) -> tuple[int, float]:
    if value is None:
        return 0, 0.0
    if math.isnan(value):
        return 3, 0.0
    # Half of each, since the difference of two large numbers may be none.
    return (1, abs(value / 2 - usual / 2)) if math.isfinite(value) else (2, 0.0)


def _sign(value: Value, low: float, high: float) -> str:
    if value is None:
        return MISSING
    if math.isnan(value):
        return NAN
    if math.isinf(value):
        return ABOVE if value > 0 else BELOW
    if high <= low:
        return LEVELS[3]
    share = (value / 2 - low / 2) / (high / 2 - low / 2)
    return LEVELS[min(int(share * len(LEVELS)), len(LEVELS) - 1)]
