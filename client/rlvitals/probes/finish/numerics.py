"""Counts of non-finite values."""

from __future__ import annotations

from rlvitals.probes.finish.tables import Family

NUMERICS = Family(
    counts={
        "numerics.nonfinite_loss": ("nonfinite.loss",),
        "numerics.nonfinite_gradient": ("nonfinite.gradient",),
        "numerics.nonfinite_logprobs": ("nonfinite.logp", "nonfinite.ref", "nonfinite.old"),
        "numerics.nonfinite_advantages": ("nonfinite.advantages",),
        "numerics.nonfinite_rewards": ("nonfinite.rewards",),
        "numerics.nonfinite_padding": ("nonfinite.padding",),
        "numerics.nonfinite": (
            "nonfinite.loss",
            "nonfinite.gradient",
            "nonfinite.logp",
            "nonfinite.ref",
            "nonfinite.old",
            "nonfinite.advantages",
        ),
    },
)
