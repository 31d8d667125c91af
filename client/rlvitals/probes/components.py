"""Reward functions one by one: which of them tells answers apart, and how much of the total's variance is its."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rlvitals.probes.arguments import ProbeArgumentError, ShapeError
from rlvitals.probes.arrays import floats
from rlvitals.probes.finish.components import BOTH, OWN, PART, TOTAL
from rlvitals.probes.groups import total_rewards
from rlvitals.probes.sketch import Moments
from rlvitals.probes.tally import Tally
from rlvitals.probes.uncompiled import uncompiled


@uncompiled
def tally_components(per_function: Any, names: Sequence[str], weights: Any = None) -> Tally:
    """Tallies the rewards (N, F) of the functions ``names`` (F,), weighted by ``weights`` (F,) in the total.

    A function that gave None, NaN or an infinity is left out of that row; rows whose total is not finite are
    left out of the shares. For the share of function f in the variance of the total t the tally keeps the
    moments of w r, of t and of w r + t, from which the covariance follows and which add up.
    """
    rewards = floats(per_function)
    if rewards.ndim != 2:
        raise ShapeError("per_function", "(completions, functions)", f"{rewards.ndim} dimensions")
    if rewards.shape[1] != len(names):
        raise ProbeArgumentError("names", f"one for each of {rewards.shape[1]} reward functions", str(len(names)))
    factors = floats(weights).ravel() if weights is not None else np.ones(len(names))
    if factors.size != len(names):
        raise ProbeArgumentError("weights", f"one for each of {len(names)} reward functions", str(factors.size))
    total = total_rewards(rewards, factors)
    whole = np.isfinite(total)
    moments = {TOTAL: Moments.of(total[whole])}
    for name, column, factor in zip(_apart(names), rewards.T, factors, strict=True):
        part = np.where(np.isfinite(column[whole]), column[whole], 0.0) * factor
        moments[OWN + name] = Moments.of(column[np.isfinite(column)])
        moments[PART + name] = Moments.of(part)
        moments[BOTH + name] = Moments.of(part + total[whole])
    return Tally(moments=moments)


def _apart(names: Sequence[str]) -> list[str]:
    """The names, numbered where a function is there twice."""
    return [f"{name}_{place}" if name in names[:place] else name for place, name in enumerate(names)]
