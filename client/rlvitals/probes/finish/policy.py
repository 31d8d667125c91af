"""The policy itself, and why what only some trainers can give is missing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rlvitals.probes.finish.tables import Family, Finding

if TYPE_CHECKING:
    from rlvitals.probes.tally import Tally

RAN = "policy.loss_tokens"
NO_REFERENCE = "not measured: no reference log-probs were given to compare with"
NO_PARAMETERS = "not measured: the KL gradient by the parameters is off unless asked for"
OPTIONAL = {
    **{
        f"ratio.reference_{name}": ("ratio.reference_tokens", NO_REFERENCE)
        for name in ("max", "min", "log_abs_p999", "ess", "beyond_count")
    },
    "kl.parameter_grad_norm": ("kl.parameter_grad_norm", NO_PARAMETERS),
}
"""metric → (what its probe leaves behind, why it is missing where nobody called that probe)"""


def _optional(tally: Tally) -> Iterator[Finding]:
    """Where the loss was looked at and these were not: missing for the loss's own reason, or for theirs."""
    if RAN not in tally.counts and RAN not in tally.missing:
        return
    for name, (left, reason) in OPTIONAL.items():
        if left not in tally.counts and left not in tally.maxima:
            yield name, tally.missing.get(RAN, reason)


POLICY = Family(
    counts={
        "policy.loss_tokens": ("policy.loss_tokens",),
    },
    extremes={
        "kl.parameter_grad_norm": ("maxima", "kl.parameter_grad_norm", NO_PARAMETERS),
    },
    findings=_optional,
)
