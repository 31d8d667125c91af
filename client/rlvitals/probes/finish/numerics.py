"""Counts of non-finite values, and the spread of the logits."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rlvitals.probes.finish.tables import Family, Finding

if TYPE_CHECKING:
    from rlvitals.probes.tally import Tally

NO_LOGITS = "no finite logit at the positions that were looked at"
_TENSORS = ("loss", "gradient", "logp", "ref", "old", "advantages")
_KINDS = {
    "numerics.nan": "nan",
    "numerics.positive_infinity": "positive",
    "numerics.negative_infinity": "negative",
}


def _logits(tally: Tally) -> Iterator[Finding]:
    if "logit.values" in tally.counts:
        count = tally.counts["logit.values"]
        yield "numerics.logit_std", math.sqrt(tally.sums["logit.apart_sq"] / count) if count else NO_LOGITS


NUMERICS = Family(
    counts={
        "numerics.nonfinite_loss": ("nonfinite.loss",),
        "numerics.nonfinite_gradient": ("nonfinite.gradient",),
        "numerics.nonfinite_logprobs": ("nonfinite.logp", "nonfinite.ref", "nonfinite.old"),
        "numerics.nonfinite_policy": ("nonfinite.logp",),
        "numerics.nonfinite_reference": ("nonfinite.ref",),
        "numerics.nonfinite_old": ("nonfinite.old",),
        "numerics.nonfinite_rollout": ("nonfinite.rollout",),
        "numerics.nonfinite_ratios": ("nonfinite.ratios",),
        "numerics.nonfinite_logits": ("nonfinite.logits",),
        "numerics.nonfinite_advantages": ("nonfinite.advantages",),
        "numerics.nonfinite_rewards": ("nonfinite.rewards",),
        "numerics.nonfinite_weights": ("nonfinite.weights",),
        "numerics.nonfinite_padding": ("nonfinite.padding",),
        "numerics.nonfinite": tuple(f"nonfinite.{what}" for what in _TENSORS),
        **{metric: tuple(f"nonfinite.{what}.{kind}" for what in _TENSORS) for metric, kind in _KINDS.items()},
    },
    extremes={
        "numerics.logit_min": ("minima", "logit.values", NO_LOGITS),
        "numerics.logit_max": ("maxima", "logit.values", NO_LOGITS),
    },
    findings=_logits,
)
