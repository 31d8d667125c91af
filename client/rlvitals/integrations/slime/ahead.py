"""Before the update: would the KL's gradient be NaN? By default Megatron raises at one, and tells no more.

slime's ``low_var_kl`` clamps behind its exponential: where exp(ref - logp) overflows the loss stays 10 and finite,
and the gradient becomes NaN.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from rlvitals.guard import Guard
from rlvitals.integrations.slime import batches
from rlvitals.probes.kl import measure_kl
from rlvitals.probes.tally import Tally

if TYPE_CHECKING:
    from rlvitals.integrations.ranks import Ranks
    from rlvitals.integrations.slime.mesh import Place

TOKENS, MARGIN = "kl.nan_gradient_tokens", "kl.overflow_margin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Poisoned:
    """So many tokens of a rollout whose KL gradient overflows; ``margin`` is how far the worst is from it."""

    tokens: float
    margin: float | None

    def values(self) -> dict[str, float]:
        return {TOKENS: self.tokens} | ({} if self.margin is None else {MARGIN: self.margin})

    def told(self) -> str:
        return f"{self.tokens:g} tokens of this rollout would give the KL loss a gradient of NaN"


def can_be(args: Any) -> bool:
    """Whether this estimator has such a gradient; the same on all ranks."""
    return bool(getattr(args, "use_kl_loss", False)) and getattr(args, "kl_loss_type", "") == "low_var_kl"


def poisoned(args: Any, data: Mapping[str, Any], place: Place, ranks: Ranks) -> Poisoned | None:
    """Collective. None where all is well, where it cannot be known, and on ranks that do not report."""
    if not can_be(args):
        return None
    tally = Tally.zero()
    with Guard("slime: the KL before the update"):
        if place.counts:
            tally = _tally(args, data, place)
    found = ranks.gather(tally).measured().values
    tokens = found.get(TOKENS, 0.0)
    return Poisoned(tokens=tokens, margin=found.get(MARGIN)) if ranks.rank == 0 and tokens > 0 else None


def _tally(args: Any, data: Mapping[str, Any], place: Place) -> Tally:
    told = batches.of_rollout_data(args, data, place.part)
    logp, ref, mask = told["logp"], told["ref"], told["mask"]
    if logp is None or ref is None:
        return Tally.zero()
    weight = torch.ones(1, 1, device=logp.device)
    return measure_kl(
        logp.float(), ref.float(), mask, weight, coef=1.0, estimator="low_var_kl", clamp="after", ids=told["ids"]
    ).tally()
