"""The policy itself."""

from __future__ import annotations

from rlvitals.probes.finish.tables import Family

POLICY = Family(
    counts={
        "policy.loss_tokens": ("policy.loss_tokens",),
    },
)
