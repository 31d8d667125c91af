"""The least and the greatest reward that an answer can get: what tells all right from all wrong."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from rlvitals.probes.arguments import ProbeArgumentError
from rlvitals.probes.arrays import Flags, Floats, floats
from rlvitals.probes.grouping import EQUAL_WITHIN


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardRange:
    """``given`` by whoever wrote the reward function; otherwise what the run has shown so far."""

    low: float = math.inf
    high: float = -math.inf
    given: bool = False

    @classmethod
    def of(cls, low: float, high: float) -> RewardRange:
        """The range by definition. Raises `ProbeArgumentError` unless low < high and both are finite."""
        if not -math.inf < low < high < math.inf:
            raise ProbeArgumentError("reward_range", "two finite numbers, the less one first", f"{low}, {high}")
        return cls(low=float(low), high=float(high), given=True)

    def including(self, rewards: Any) -> RewardRange:
        """The range after ``rewards`` (any shape) were seen too, finite ones only; a given range stays."""
        values = floats(rewards).ravel()
        values = values[np.isfinite(values)]
        if self.given or not values.size:
            return self
        return RewardRange(low=min(self.low, float(values.min())), high=max(self.high, float(values.max())))

    @property
    def known(self) -> bool:
        """False as long as all rewards seen were the same: they may be the best or the worst."""
        return self.low < self.high

    def at_top(self, levels: Floats) -> Flags:
        """Which of ``levels`` are as high as an answer can get, within a millionth."""
        found: Flags = levels >= self.high - EQUAL_WITHIN * max(1.0, abs(self.high))
        return found

    def at_bottom(self, levels: Floats) -> Flags:
        found: Flags = levels <= self.low + EQUAL_WITHIN * max(1.0, abs(self.low))
        return found
