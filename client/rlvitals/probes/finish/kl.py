"""KL to the reference and its gradient."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rlvitals.probes.finish.tables import NO_LOSS_TOKENS, Family, Finding

if TYPE_CHECKING:
    from rlvitals.probes.tally import Tally

NO_PULL = "all advantages are zero: there is no policy pull to compare with"


def _kl_gradient(tally: Tally) -> Iterator[Finding]:
    if "kl.grad_sq" not in tally.sums:
        return
    tokens = tally.counts.get("kl.tokens", 0)
    if not tokens:
        yield from ((name, NO_LOSS_TOKENS) for name in ("kl.grad_norm", "kl.grad_l2", "kl.grad_rms"))
        return
    plain = math.sqrt(tally.sums["kl.grad_sq"])
    pull = math.sqrt(tally.sums["kl.pull_sq"])
    yield "kl.grad_norm", pull
    yield "kl.grad_l2", plain
    yield "kl.grad_rms", plain / math.sqrt(tokens)
    if "policy.pull_sq" in tally.sums:
        policy = math.sqrt(tally.sums["policy.pull_sq"])
        yield "kl.pull_ratio", _over(pull, policy)


def _over(pull: float, policy: float) -> float | str:
    if policy == 0:
        return NO_PULL
    return pull / policy if math.isfinite(policy) else "the policy pull overflows"


KL = Family(
    quotients={
        "kl.k1": ("kl.k1", "kl.tokens", 1.0, NO_LOSS_TOKENS),
        "kl.k2": ("kl.k2", "kl.tokens", 1.0, NO_LOSS_TOKENS),
        "kl.k3": ("kl.k3", "kl.tokens", 1.0, NO_LOSS_TOKENS),
        "kl.capped": ("kl.capped", "kl.tokens", 1.0, NO_LOSS_TOKENS),
        "kl.clamped_share": ("kl.clamped", "kl.tokens", 1.0, NO_LOSS_TOKENS),
    },
    extremes={
        "kl.grad_max": ("maxima", "kl.tokens", NO_LOSS_TOKENS),
    },
    top_ids={"kl.grad_top_id_share": ("kl.tokens", NO_LOSS_TOKENS)},
    findings=_kl_gradient,
)
