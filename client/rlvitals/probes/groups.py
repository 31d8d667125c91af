"""Rewards, groups and advantages (signals 1.6)."""

from __future__ import annotations

from typing import Any

import numpy as np

from rlvitals.contract.report import Extreme
from rlvitals.probes.arguments import ShapeError, check_same_shape, written
from rlvitals.probes.arrays import Flags, Floats, flags, floats
from rlvitals.probes.grouping import Spread, group_of, spread_of
from rlvitals.probes.reward_range import RewardRange
from rlvitals.probes.sketch import Moments, Sketch
from rlvitals.probes.tally import Tally
from rlvitals.probes.uncompiled import uncompiled

NONFINITE = "numerics.nonfinite_rewards"
SPLIT = ("reward.all_right_groups", "reward.all_wrong_groups", "reward.all_equal_groups")
NO_RANGE = "neither a reward range was given nor have two different rewards been seen"
_LEAST, _MOST, _BINS = 2.0**-10, 2.0**14, 96
"""Four bins per octave to draw; smaller rewards are drawn as zero, larger ones share a bin."""
ADVANTAGE_IN_EQUAL = "reward.advantage_equal_group_max"


@uncompiled
def total_rewards(per_function: Any, weights: Any = None) -> Floats:
    """(N, F) rewards by function → (N,) totals; a function that gave None or NaN is left out of its row.

    A row in which every function gave None or NaN is NaN (a trainer's own nansum says 0 there). Infinities stay.
    """
    rewards = floats(per_function)
    if rewards.ndim != 2:
        raise ShapeError("per_function", "(completions, functions)", f"{rewards.ndim} dimensions")
    given = ~np.isnan(rewards)
    factor = floats(weights).ravel() if weights is not None else np.ones(rewards.shape[1])
    if factor.size != rewards.shape[1]:
        raise ShapeError("weights", f"one for each of {rewards.shape[1]} reward functions", str(factor.size))
    with np.errstate(invalid="ignore"):
        total: Floats = np.where(given, rewards * factor, 0.0).sum(axis=1)
    return np.where(given.any(axis=1), total, np.nan)


@uncompiled
def tally_rewards(
    rewards: Any,
    group_size: int | None = None,
    *,
    group_ids: Any = None,
    reward_range: RewardRange | None = None,
    sample_offset: int = 0,
) -> Tally:
    """Tallies ``rewards`` (N,) in groups, before any filter drops a group.

    Groups are ``group_size`` neighbours, or the equal ``group_ids`` (N,) where their sizes differ; all completions
    of a group belong in one call. None, NaN and infinities are counted as non-finite and left out; a group needs
    two finite rewards to have a spread. The standard deviations divide by n - 1, as the trainers' do. A group
    whose standard deviation is at most 1e-6 * max(1, |r|) counts as all equal; ``reward_range`` tells whether
    that is all right, all wrong or in between.
    """
    flat = floats(rewards).ravel()
    finite = np.isfinite(flat)
    spread = spread_of(flat, group_of(flat.size, group_size, group_ids))
    tally = Tally(
        counts={
            "reward.seen": int(finite.sum()),
            "reward.completions": flat.size,
            "reward.all_groups": spread.members.size,
            "reward.single_groups": int((spread.members == 1).sum()),
            "reward.groups": int(spread.enough.sum()),
            "reward.zero_std_groups": int(spread.equal.sum()),
            "nonfinite.rewards": int((~finite).sum()),
        },
        sums={"reward.group_std": float(spread.std[spread.enough].sum())},
        moments={"reward": Moments.of(flat[finite])},
        sketches=_distributions(flat[finite], spread),
        minima={"reward.min": _at(flat, np.where(finite, flat, np.inf).argmin(), sample_offset)}
        if finite.any()
        else {},
        maxima={"reward.max": _at(flat, np.where(finite, flat, -np.inf).argmax(), sample_offset)}
        if finite.any()
        else {},
        firsts={} if finite.all() else {NONFINITE: _at(flat, finite.argmin(), sample_offset)},
    )
    return tally + _sides(spread, reward_range)


@uncompiled
def in_equal_group(rewards: Any, group_size: int | None = None, *, group_ids: Any = None) -> Flags:
    """(N,) whether each completion's group has two or more finite rewards, all equal: nothing to learn from."""
    flat = floats(rewards).ravel()
    of = group_of(flat.size, group_size, group_ids)
    equal: Flags = spread_of(flat, of).equal[of]
    return equal


@uncompiled
def tally_advantages(advantages: Any, *, equal: Any = None, mask: Any = None, sample_offset: int = 0) -> Tally:
    """Tallies the largest |A| of ``advantages`` (B,) or (B, T) and how many are 0; non-finite ones are left out.

    ``equal`` (B,) from `in_equal_group`: advantages there should be 0, but a float32 mean is off by one ulp and a
    small epsilon makes that as large as 1. ``mask`` (B, T) hides padding.
    """
    values = floats(advantages)
    if values.ndim > 2:
        raise ShapeError("advantages", "(B,) or (B, T)", written(values.shape))
    finite = np.isfinite(values)
    if mask is not None:
        hidden = flags(mask)
        check_same_shape(advantages=values, mask=hidden)
        finite &= hidden
    tally = Tally(
        counts={"advantage.seen": int(finite.sum()), "advantage.zero": int((finite & (values == 0)).sum())},
        maxima=_largest("reward.advantage_abs_max", values, finite, sample_offset),
    )
    if equal is None:
        return tally
    rows = flags(equal).ravel()
    if rows.shape != values.shape[:1]:
        raise ShapeError("equal", f"({values.shape[0]},)", written(rows.shape))
    inside = finite & rows.reshape(-1, *[1] * (values.ndim - 1))
    return tally + Tally(
        counts={"advantage.equal_group": int(inside.sum())},
        maxima=_largest(ADVANTAGE_IN_EQUAL, values, inside, sample_offset),
    )


def _distributions(rewards: Floats, spread: Spread) -> dict[str, Sketch]:
    """Of the rewards below zero, of all others, and of the spreads of the groups that have one."""
    return {
        "reward.down": Sketch.of(-rewards[rewards < 0], low=_LEAST, high=_MOST, bins=_BINS),
        "reward.up": Sketch.of(rewards[rewards >= 0], low=_LEAST, high=_MOST, bins=_BINS),
        "reward.group_std": Sketch.of(spread.std[spread.enough], low=_LEAST, high=_MOST, bins=_BINS),
    }


def _sides(spread: Spread, known: RewardRange | None) -> Tally:
    """All-equal groups by where they lie in the range."""
    if known is None or not known.known:
        return Tally.absent((*SPLIT, "reward.range_low", "reward.range_high", "reward.range_given"), NO_RANGE)
    level = spread.level[spread.equal]
    right, wrong = known.at_top(level), known.at_bottom(level)
    return Tally(
        counts={
            "reward.judged_groups": int(spread.enough.sum()),
            "reward.all_right_groups": int(right.sum()),
            "reward.all_wrong_groups": int((wrong & ~right).sum()),
            "reward.all_equal_groups": int((~right & ~wrong).sum()),
            "reward.range_given": int(known.given),
            "reward.range_observed": int(not known.given),
        },
        minima={"reward.range_low": Extreme(value=known.low)},
        maxima={"reward.range_high": Extreme(value=known.high)},
    )


def _largest(name: str, values: Floats, among: Flags, offset: int) -> dict[str, Extreme]:
    if not among.any():
        return {}
    flat = values.ravel()
    where = int(np.where(among.ravel(), np.abs(flat), -1.0).argmax())
    sample, position = divmod(where, values.shape[1]) if values.ndim == 2 else (where, None)
    return {name: Extreme(value=abs(float(flat[where])), sample=sample + offset, position=position)}


def _at(flat: Floats, row: np.intp, offset: int) -> Extreme:
    return Extreme(value=float(flat[row]), sample=int(row) + offset)
