"""One generation's rewards and advantages → a Tally, and what is still on the device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from rlvitals.probes.advantages import measure_advantages
from rlvitals.probes.arrays import Floats
from rlvitals.probes.components import tally_components
from rlvitals.probes.groups import in_equal_group, tally_rewards, total_rewards
from rlvitals.probes.reduction import Reduction
from rlvitals.probes.reward_range import RewardRange
from rlvitals.probes.tally import Tally


@dataclass(slots=True)
class RewardReader:
    """``names`` and ``weights`` of the reward functions; ``range`` is given, or grows with what the run shows."""

    names: Sequence[str]
    weights: Any
    group_size: int
    range: RewardRange = field(default_factory=RewardRange)

    def totals(self, per_function: Any) -> Floats:
        """(N,) of all ranks' completions; NaN where no function gave a reward."""
        return total_rewards(per_function, self.weights)

    def read_rewards(self, per_function: Any, totals: Floats) -> Tally:
        """Of all ranks together: TRL shows the same rewards to each, so one of them counts them."""
        self.range = self.range.including(totals)
        tally = tally_rewards(totals, self.group_size, reward_range=self.range)
        functions = per_function.shape[1]
        names = self.names if len(self.names) == functions else [f"function_{n}" for n in range(functions)]
        return tally + tally_components(per_function, names, self.weights)

    def read_advantages(self, advantages: Tensor, totals: Floats | None, first_sample: int) -> Reduction:
        """Of this rank's completions (B,) or their tokens (B, T), the first of them number ``first_sample``."""
        if totals is None:
            return measure_advantages(advantages, sample_offset=first_sample)
        own = slice(first_sample, first_sample + advantages.shape[0])
        equal = torch.as_tensor(in_equal_group(totals, self.group_size)[own])
        return measure_advantages(advantages, equal=equal, sample_offset=first_sample)
