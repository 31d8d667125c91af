"""Which completions answer the same prompt, and how far their rewards lie apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rlvitals.probes.arguments import ProbeArgumentError, check_at_least
from rlvitals.probes.arrays import Flags, Floats, Whole, is_tensor, whole

EQUAL_WITHIN = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Per group (G,): ``members`` with any reward, ``known`` with a finite one, their sample standard deviation
    ``std`` (n - 1; NaN below two), their mean ``level``, and whether they are all ``equal``."""

    of: Whole
    """(N,) the group of each completion"""
    members: Whole
    known: Whole
    std: Floats
    level: Floats
    equal: Flags

    @property
    def enough(self) -> Flags:
        """Groups with two or more finite rewards; only these have a spread."""
        found: Flags = self.known >= 2
        return found


def group_of(size: int, group_size: int | None, group_ids: Any) -> Whole:
    """(N,) the number of each completion's group, from 0; neighbours where only a size is given.

    ``group_ids`` (N,) may be numbers or text in any order, and the groups of any size. Raises
    `ProbeArgumentError` where neither or both are given, or where there is not one id per completion.
    """
    if group_ids is None:
        if group_size is None:
            raise ProbeArgumentError("group_size", "a size, or group_ids", "neither")
        check_at_least("group_size", group_size, 1)
        return np.arange(size, dtype=np.int64) // group_size
    if group_size is not None:
        raise ProbeArgumentError("group_size", "a size or group_ids", "both")
    ids = whole(group_ids) if is_tensor(group_ids) else np.asarray(group_ids)
    if ids.size != size:
        raise ProbeArgumentError("group_ids", f"one id for each of {size} completions", str(ids.size))
    numbers: Whole = np.unique(ids.ravel(), return_inverse=True)[1].reshape(-1).astype(np.int64)
    return numbers


def spread_of(rewards: Floats, of: Whole) -> Spread:
    """The spread of ``rewards`` (N,) in the groups ``of`` (N,); non-finite ones are left out.

    A group counts as all equal where its standard deviation is at most 1e-6 * max(1, |r|).
    """
    groups = int(of.max()) + 1 if of.size else 0
    finite = np.isfinite(rewards)
    there, values = of[finite], rewards[finite]
    members, known = np.bincount(of, minlength=groups), np.bincount(there, minlength=groups)
    largest = np.zeros(groups)
    np.maximum.at(largest, there, np.abs(values))
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        # a sum of huge rewards would overflow, a sum of their parts does not
        level: Floats = np.bincount(there, values / known[there], groups).astype(np.float64, copy=False)
        apart = np.bincount(there, np.square(values - level[there]), groups)
        std: Floats = np.where(known >= 2, np.sqrt(apart / (known - 1)), np.nan)
        equal = (known >= 2) & (std <= EQUAL_WITHIN * np.maximum(1.0, largest))
    return Spread(of=of, members=members, known=known, std=std, level=level, equal=equal)
