"""The value axis of a chart: linear, logarithmic, or logarithmic on both sides of zero. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rlvitals.contract.metrics import Metric, Worse
from rlvitals.contract.view import SeriesView
from rlvitals_dashboard.symlog import SymLog

LOG_SPREAD = 1000.0
"""Positive values that spread further than this are drawn on a logarithmic axis."""
ROUNDING = 1e-9
"""Values closer together than this share of their size are drawn as one level."""
DRAWABLE_MAX = 1e300
"""Larger values are drawn at this edge: the span of an axis over ±1e308 is no double, and the chart breaks."""
WISHES = ("", "log", "linear")
"""What a person may ask for; without a wish the values decide."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """``symlog`` where zero or negative values are on a logarithmic axis: then places are drawn, not values."""

    log: bool = False
    symlog: SymLog | None = None

    @classmethod
    def of(cls, shown: Sequence[SeriesView], wish: str = "") -> Scale:
        values = finite_values(shown)
        if wish == "linear" or not values:
            return cls()
        if min(values) > 0:
            return cls(log=wish == "log" or _spreads(values))
        return cls(symlog=SymLog.of(values)) if wish == "log" else cls()

    @property
    def linear(self) -> bool:
        return not self.log and self.symlog is None

    @property
    def code(self) -> float | None:
        """For the browser to give back: None linear, 0 logarithmic, else the linear threshold."""
        return self.symlog.linear if self.symlog else 0.0 if self.log else None

    @classmethod
    def read(cls, code: object) -> Scale:
        """From its `code`."""
        if isinstance(code, bool) or not isinstance(code, (int, float)):
            return cls()
        return cls(symlog=SymLog(linear=float(code))) if code > 0 else cls(log=True)

    def place(self, value: float | None) -> float | None:
        """Where a value is drawn; None for what has no place on the axis."""
        if value is None or not math.isfinite(value):
            return None
        bounded = max(-DRAWABLE_MAX, min(value, DRAWABLE_MAX))
        return self.symlog.place(bounded) if self.symlog else bounded

    def places(self, values: Sequence[float | None]) -> list[float | None]:
        """`place` of each."""
        if self.symlog is None and _all_drawable(values):
            return list(values)
        return [self.place(value) for value in values]

    def takes(self, value: float | None) -> bool:
        """Whether a new value can be drawn on this axis as it is."""
        return not self.log or value is None or not math.isfinite(value) or value > 0


def finite_values(shown: Iterable[SeriesView]) -> list[float]:
    """The values of a bucket are between its least and its greatest."""
    rows = [v for s in shown for v in ((*s.low, *s.high) if s.bucket > 1 else s.value)]
    values = np.array(rows, np.float64)
    return values[np.isfinite(values)].tolist()  # type: ignore[no-any-return]


def _all_drawable(values: Sequence[float | None]) -> bool:
    """Whether each has a place on a linear axis, and that is itself."""
    sizes = np.abs(np.array(values, np.float64))
    return bool((sizes <= DRAWABLE_MAX).all())


def _spreads(values: Sequence[float]) -> bool:
    if len(values) < 3:
        return False
    middle = sorted(values)[len(values) // 2]
    return max(values) / middle > LOG_SPREAD or middle / min(values) > LOG_SPREAD


def value_axis(shown: Sequence[SeriesView], metric: Metric | None, scale: Scale, top: float) -> dict[str, Any]:
    """Plotly's description of it, up to the share ``top`` of the chart's height."""
    values = finite_values(shown)
    axis: dict[str, Any] = {"domain": [0, top], "fixedrange": True, "nticks": 4, "exponentformat": "power"}
    if scale.symlog:
        places, labels = scale.symlog.ticks(min(values), max(values), most=4)
        return axis | {"tickmode": "array", "tickvals": places, "ticktext": labels, "tickfont": {"size": 9}}
    if scale.log:
        return axis | {"type": "log", "tickformat": "", "dtick": _decades(values), "tickfont": {"size": 9}}
    axis["tickformat"] = _tick_format(values)
    bounded = metric is not None and metric.unit == "1" and metric.worse is Worse.UP
    if level := _level(values):
        return axis | {"range": sorted((0.0, 1.1 * level)), "autorange": False, "tickformat": ".4~g"}
    flat = bool(values) and min(values) == max(values) >= 0
    return axis | {"rangemode": "tozero" if bounded or flat else "normal"}


def _decades(values: Sequence[float]) -> int:
    """Decades between two ticks, so that there are about four of them."""
    return max(1, round((math.log10(max(values)) - math.log10(min(values))) / 4))


def _tick_format(values: Sequence[float]) -> str:
    """Plotly's own choice, but for sizes whose digits would not fit beside a small chart."""
    largest = max(map(abs, values), default=0.0)
    if largest >= 1e15 or 0 < largest < 1e-3:
        return ".2~e"
    return ".3~s" if largest >= 1e4 else ""


def _level(values: Sequence[float]) -> float:
    """The one value of a series that differs by rounding only, whose noise would fill the chart; else 0."""
    low, high = (min(values), max(values)) if values else (0.0, 0.0)
    largest = max(abs(low), abs(high))
    noise = low < high and high / 2 - low / 2 < ROUNDING * largest / 2
    return (low if low < 0 else high) if noise and largest < DRAWABLE_MAX else 0.0
