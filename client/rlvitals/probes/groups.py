"""Rewards, groups and advantages (signals 1.6)."""

from __future__ import annotations

from typing import Any

import numpy as np

from rlvitals.contract.report import Extreme
from rlvitals.probes.arrays import Flags, Floats, floats
from rlvitals.probes.sketch import Moments
from rlvitals.probes.tally import Tally

EQUAL_WITHIN = 1e-6
NONFINITE = "numerics.nonfinite_rewards"


def total_rewards(per_function: Any, weights: Any = None) -> Floats:
    """(N, F) rewards by function → (N,) totals; a function that gave None or NaN is left out of its row.

    A row in which every function gave None or NaN is NaN (a trainer's own nansum says 0 there). Infinities stay.
    """
    rewards = floats(per_function)
    if rewards.ndim != 2:
        raise ValueError(f"per_function: expected (completions, functions), got {rewards.ndim} dimensions")
    given = ~np.isnan(rewards)
    with np.errstate(invalid="ignore"):
        factor = floats(weights) if weights is not None else np.ones(rewards.shape[1])
        total: Floats = np.where(given, rewards * factor, 0.0).sum(axis=1)
    return np.where(given.any(axis=1), total, np.nan)


def tally_rewards(rewards: Any, group_size: int, *, sample_offset: int = 0) -> Tally:
    """Tallies ``rewards`` (N,) in groups of ``group_size`` neighbours, before any filter drops a group.

    None, NaN and infinities are counted as non-finite and left out; a group needs two finite rewards to have a
    spread. The standard deviations divide by n - 1, as the trainers' do. A group whose standard deviation is at
    most 1e-6 * max(1, |r|) counts as all equal.
    """
    if group_size < 1:
        raise ValueError(f"group_size: expected 1 or more, got {group_size}")
    flat = floats(rewards).ravel()
    finite = np.isfinite(flat)
    spread, equal = _spreads(flat, finite, group_size)
    return Tally(
        counts={
            "reward.seen": int(finite.sum()),
            "reward.groups": spread.size,
            "reward.zero_std_groups": int(equal.sum()),
            "nonfinite.rewards": int((~finite).sum()),
        },
        sums={"reward.group_std": float(spread.sum())},
        moments={"reward": Moments.of(flat[finite])},
        minima={"reward.min": _at(flat, np.where(finite, flat, np.inf).argmin(), sample_offset)}
        if finite.any()
        else {},
        maxima={"reward.max": _at(flat, np.where(finite, flat, -np.inf).argmax(), sample_offset)}
        if finite.any()
        else {},
        firsts={} if finite.all() else {NONFINITE: _at(flat, finite.argmin(), sample_offset)},
    )


def tally_advantages(advantages: Any, *, sample_offset: int = 0) -> Tally:
    """Tallies the largest |A| of ``advantages`` (B,) or (B, T); non-finite ones are left out."""
    values = floats(advantages)
    flat = values.ravel()
    finite = np.isfinite(flat)
    largest = {}
    if finite.any():
        where = int(np.where(finite, np.abs(flat), -1.0).argmax())
        sample, position = (
            (where // values.shape[1], where % values.shape[1]) if values.ndim == 2 else (where, None)
        )
        largest["reward.advantage_abs_max"] = Extreme(
            value=abs(float(flat[where])), sample=sample + sample_offset, position=position
        )
    return Tally(counts={"advantage.seen": int(finite.sum())}, maxima=largest)


def _spreads(flat: Floats, finite: Flags, size: int) -> tuple[Floats, Flags]:
    """Standard deviation of each group with two or more finite rewards, and whether it counts as all equal."""
    groups = -(-flat.size // size)
    shape, padding = (groups, size), (0, groups * size - flat.size)
    rewards = np.pad(np.where(finite, flat, 0.0), padding).reshape(shape)
    known = np.pad(finite, padding).reshape(shape)
    enough = known.sum(axis=1) >= 2
    rewards, known = rewards[enough], known[enough]
    count = known.sum(axis=1)
    with np.errstate(over="ignore", invalid="ignore"):
        mean = (rewards / count[:, None]).sum(axis=1)  # a sum of huge rewards would overflow
        apart = np.where(known, rewards - mean[:, None], 0.0)
        std: Floats = np.sqrt(np.square(apart).sum(axis=1) / (count - 1))
    return std, std <= EQUAL_WITHIN * np.maximum(1.0, np.abs(rewards).max(axis=1, initial=0.0))


def _at(flat: Floats, row: np.intp, offset: int) -> Extreme:
    return Extreme(value=float(flat[row]), sample=int(row) + offset)
