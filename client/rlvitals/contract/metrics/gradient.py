"""Gradients of the parameters."""

from __future__ import annotations

from rlvitals.contract.metrics.metric import Merge, Metric, Worse

GRADIENT: tuple[Metric, ...] = (
    Metric(
        name="gradient.norm",
        unit="1",
        merge=Merge.LAST,
        worse=Worse.UP,
        meaning="Global gradient norm before clipping, every step.",
        formula="trainer",
        shape="a scalar",
    ),
)
