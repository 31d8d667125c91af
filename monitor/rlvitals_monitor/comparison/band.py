"""What healthy runs had along an axis, for people to see behind a curve; no rule reads it. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rlvitals.contract.comparison import HealthyBand

STRETCHES = 60
LEAST_RUNS = 2
LOW, MIDDLE, HIGH = 0.05, 0.5, 0.95

Floats = NDArray[np.float64]


def make_band(curves: Sequence[tuple[Floats, Floats]], first: float, last: float) -> HealthyBand:
    """Of (places, values) of each healthy run, from ``first`` to ``last``. A stretch of the axis in which fewer
    than `LEAST_RUNS` have a number has no band; NaN and the infinities are no part of what is healthy."""
    if not last > first:
        return HealthyBand()
    edges = np.linspace(first, last, STRETCHES + 1)
    pools: list[list[Floats]] = [[] for _ in range(STRETCHES)]
    seen = 0
    for at, value in curves:
        good = np.isfinite(value) & (at >= first) & (at <= last)
        seen += bool(good.any())
        stretch = np.clip(np.searchsorted(edges, at[good], "right") - 1, 0, STRETCHES - 1)
        for number in np.unique(stretch):
            pools[int(number)].append(value[good][stretch == number])
    kept = [number for number, pool in enumerate(pools) if len(pool) >= LEAST_RUNS]
    if not kept:
        return HealthyBand()
    # Sorted picks, since interpolation between two huge values of unlike sign overflows.
    rows = [np.quantile(np.concatenate(pools[number]), (LOW, MIDDLE, HIGH), method="nearest") for number in kept]
    low, middle, high = (tuple(float(row[i]) for row in rows) for i in range(3))
    middles = tuple(float(edges[n] / 2 + edges[n + 1] / 2) for n in kept)
    return HealthyBand(at=middles, low=low, middle=middle, high=high, runs=seen)
