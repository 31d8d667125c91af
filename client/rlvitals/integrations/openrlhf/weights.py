"""The weight that OpenRLHF's loss gives a token, over all micro-batches and ranks of an optimizer step."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

IMPORTANCE_MAX = 10.0
"""Where OpenRLHF caps the weight of its unbiased KL gradient."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighting:
    """``updates`` optimizer steps follow a rollout; gradient norms are told as their root mean square.

    ``accumulation`` micro-batches make an optimizer step, on each of ``ranks`` data-parallel ranks.
    """

    by_sequence: bool
    dynamic: bool
    accumulation: int
    ranks: int
    updates: int

    def weights(self, mask: Any, told: Mapping[str, Any]) -> Any:
        """(B, T); None where this release does not say what it divides by.

        ``told`` are the arguments of the policy loss: since 0.10.4 it divides by the tokens (or completions) of
        the whole optimizer step, before by those of the micro-batch. DeepSpeed then takes means over ranks and
        micro-batches, for which ``dp_size`` makes up.
        """
        seen = mask.to(told["logp"].dtype)
        rows = seen.sum(dim=-1, keepdim=True)
        divisor = told.get("global_batch_size" if self.by_sequence else "batch_num_tokens")
        if divisor is not None:
            divisor = divisor if self.dynamic else divisor * self.accumulation
        elif self.dynamic:
            return None
        else:
            own = (rows > 0).sum() if self.by_sequence else seen.sum()
            divisor = own * self.accumulation * self.ranks
        each = seen / rows.clamp(min=1) if self.by_sequence else seen
        return each / divisor / math.sqrt(self.updates)


def importance(logp: Any, old: Any) -> Any:
    """What the unbiased KL gradient multiplies a token's pull by."""
    return (logp.float() - old.float()).exp().clamp(max=IMPORTANCE_MAX)
