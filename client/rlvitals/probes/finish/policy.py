"""The policy itself, and why what only some trainers can give is missing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rlvitals.probes.finish.tables import Family, Finding

if TYPE_CHECKING:
    from rlvitals.probes.tally import Tally

SUSPECT = 0.9
RAN = "policy.loss_tokens"
OPTIONAL = {
    "kl.parameter_grad_norm": "not measured: the KL gradient by the parameters is off unless asked for",
}


def _optional(tally: Tally) -> Iterator[Finding]:
    """What nobody gave, where the loss was looked at: missing for the loss's own reason, or for its own."""
    if RAN not in tally.counts and RAN not in tally.missing:
        return
    for name, reason in OPTIONAL.items():
        if name not in tally.maxima:
            yield name, tally.missing.get(RAN, reason)


POLICY = Family(
    counts={
        "policy.loss_tokens": ("policy.loss_tokens",),
    },
    findings=_optional,
)
