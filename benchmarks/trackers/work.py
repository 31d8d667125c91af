"""The work that every tracker gets: the same scalars, one spike, one NaN."""

from __future__ import annotations

import math

SCALARS = 50
NAMES = tuple(f"family_{i % 7}/metric_{i}" for i in range(SCALARS))
FIRST = NAMES[0]
CURVE = "curve"
"""The one metric of the long run."""
SPIKE_AT, NAN_AT, SPIKE = 12_345, 23_456, 1e6
"""Early enough that the slowest gets there within its time."""


def scalars(step: int) -> dict[str, float]:
    """50 numbers of a training step."""
    return {name: 0.1234567 * place + 1e-5 * step for place, name in enumerate(NAMES)}


def curve(step: int) -> float:
    """A noisy wave; `SPIKE` at one step, NaN at another."""
    if step == NAN_AT:
        return math.nan
    return (
        SPIKE if step == SPIKE_AT else 0.5 + 0.4 * math.sin(step / 9_000) + (step * 2_654_435_761 % 1000) / 5_000
    )
