"""KL to the reference and its gradient."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rlvitals.probes.finish.tables import NO_LOSS_TOKENS, Family, Finding

if TYPE_CHECKING:
    from rlvitals.probes.tally import Tally

NO_PULL = "all advantages are zero or clipped: there is no policy pull to compare with"
NO_GRADIENT = "neither the KL nor the policy pulls"
POLICY_OVERFLOWS = "the policy pull overflows"
KL_IS_NAN = "the KL gradient is NaN: exp(ref - logp) overflows in front of a clamp"
_OF_GRADIENT = (
    "kl.nan_gradient_tokens",
    "kl.grad_norm",
    "kl.grad_l2",
    "kl.grad_rms",
    "kl.pull_ratio",
    "kl.share_of_gradient",
)


def _kl_gradient(tally: Tally) -> Iterator[Finding]:
    if "kl.grad_sq" not in tally.sums:
        return
    tokens = tally.counts.get("kl.tokens", 0)
    if not tokens:
        yield from ((name, NO_LOSS_TOKENS) for name in _OF_GRADIENT)
        return
    plain, pull = math.sqrt(tally.sums["kl.grad_sq"]), math.sqrt(tally.sums["kl.pull_sq"])
    poisoned = tally.counts.get("kl.poisoned", 0)
    yield "kl.nan_gradient_tokens", float(poisoned)
    yield "kl.grad_norm", math.nan if poisoned else pull
    yield "kl.grad_l2", plain
    yield "kl.grad_rms", plain / math.sqrt(tokens)
    if "policy.pull_sq" in tally.sums:
        policy = math.sqrt(tally.sums["policy.pull_sq"])
        yield "kl.pull_ratio", KL_IS_NAN if poisoned else _over(pull, policy)
        yield "kl.share_of_gradient", KL_IS_NAN if poisoned else _share(pull, policy)


def _over(pull: float, policy: float) -> float | str:
    if policy == 0:
        return NO_PULL
    return pull / policy if math.isfinite(policy) else POLICY_OVERFLOWS


def _share(pull: float, policy: float) -> float | str:
    if not math.isfinite(policy):
        return POLICY_OVERFLOWS
    if math.isinf(pull):
        return 1.0
    return pull / (pull + policy) if pull + policy else NO_GRADIENT


KL = Family(
    quotients={
        f"kl.{name}": (f"kl.{key}", "kl.tokens", 1.0, NO_LOSS_TOKENS)
        for name, key in (
            ("k1", "k1"),
            ("k2", "k2"),
            ("k3", "k3"),
            ("abs", "abs"),
            ("capped", "capped"),
            ("in_loss", "in_loss"),
            ("clamped_share", "clamped"),
            ("dead_zone_share", "dead"),
        )
    },
    extremes={
        f"kl.{name}": (side, "kl.tokens", NO_LOSS_TOKENS)
        for name, side in (
            ("k1_max", "maxima"),
            ("k2_max", "maxima"),
            ("k3_max", "maxima"),
            ("abs_max", "maxima"),
            ("overflow_margin", "minima"),
            ("grad_max", "maxima"),
        )
    },
    top_ids={"kl.grad_top_id_share": ("kl.tokens", NO_LOSS_TOKENS)},
    findings=_kl_gradient,
)
