"""The policy itself, and why what only some trainers can give is missing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from rlvitals.contract.report import Extreme
from rlvitals.probes.finish.tables import NO_LOSS_TOKENS, Family, Finding

if TYPE_CHECKING:
    from rlvitals.probes.tally import Tally

RAN = "policy.loss_tokens"
FORCED = "policy.forced_loss_tokens"
NO_REFERENCE = "not measured: no reference log-probs were given to compare with"
NO_PARAMETERS = "not measured: the KL gradient by the parameters is off unless asked for"
NOT_TOLD = "not measured: nobody says which tokens the policy chose"
NO_ENTROPIES = "not measured: the trainer shows no entropy of each token"
OPTIONAL = {
    **{
        f"ratio.reference_{name}": ("ratio.reference_tokens", NO_REFERENCE)
        for name in ("max", "min", "log_abs_p999", "ess", "beyond_count")
    },
    "kl.parameter_grad_norm": ("kl.parameter_grad_norm", NO_PARAMETERS),
    FORCED: ("policy.forced", NOT_TOLD),
    "policy.entropy_low_tail": ("entropy.tokens", NO_ENTROPIES),
    "policy.entropy_p01": ("entropy.tokens", NO_ENTROPIES),
    "policy.entropy_p10": ("entropy.tokens", NO_ENTROPIES),
}
"""metric → (what its probe leaves behind, why it is missing where nobody called that probe)"""
# one id with this much of the squared KL gradient, on a token that pulls this hard, is worth a look
SUSPECT_SHARE, SUSPECT_PULL = 0.5, 10.0
ENTROPY_MAX = 16.0


def _policy(tally: Tally) -> Iterator[Finding]:
    yield from _entropy(tally)
    if RAN not in tally.counts and RAN not in tally.missing:
        return
    # where the loss was looked at and these were not: missing for the loss's own reason, or for theirs
    for name, (left, reason) in OPTIONAL.items():
        if left not in tally.counts and left not in tally.maxima:
            suspect = _suspect(tally) if name == FORCED else ""
            yield name, tally.missing.get(RAN, reason + suspect)


def _suspect(tally: Tally) -> str:
    """Names the id that owns most of the KL gradient, the fingerprint of a forced token."""
    sums, peak = tally.by_id.get("kl.grad_top_id_share"), tally.maxima.get("kl.grad_max")
    top = sums.top() if sums is not None else None
    if top is None or peak is None or top[1] < SUSPECT_SHARE or peak.value < SUSPECT_PULL:
        return ""
    return (
        f"; token id {top[0]} owns {top[1]:.0%} of the squared KL gradient and the loss mask does not cover it: "
        "did the policy choose it?"
    )


def _entropy(tally: Tally) -> Iterator[Finding]:
    sketch = tally.sketches.get("entropy")
    if sketch is not None:
        for name, share in (("policy.entropy_p01", 0.01), ("policy.entropy_p10", 0.1)):
            found = sketch.quantile(share, largest=ENTROPY_MAX)
            yield name, NO_LOSS_TOKENS if found is None else found


def _forced(tally: Tally) -> Iterator[tuple[str, Extreme]]:
    """The id that is forced most often; its place where the first of all forced tokens has that id."""
    top = tally.by_id["policy.forced"].top() if "policy.forced" in tally.by_id else None
    first = tally.firsts.get("policy.forced")
    if top is None or first is None:
        return
    seen = first if first.token_id == top[0] else Extreme(value=0.0, token_id=top[0], masked=False)
    yield FORCED, replace(seen, value=float(tally.counts["policy.forced"]))


POLICY = Family(
    quotients={
        "policy.entropy": ("entropy.sum", "entropy.tokens", 1.0, NO_LOSS_TOKENS),
        "policy.entropy_low_tail": ("entropy.low", "entropy.tokens", 1.0, NO_LOSS_TOKENS),
    },
    counts={
        "policy.loss_tokens": ("policy.loss_tokens",),
        FORCED: ("policy.forced",),
    },
    extremes={
        "kl.parameter_grad_norm": ("maxima", "kl.parameter_grad_norm", NO_PARAMETERS),
    },
    histograms={"policy.entropy": "entropy"},
    findings=_policy,
    places=_forced,
)
