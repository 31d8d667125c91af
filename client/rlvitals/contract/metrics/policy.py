"""The policy itself: loss, entropy, learning rate."""

from __future__ import annotations

from rlvitals.contract.metrics.metric import Merge, Metric, Worse

POLICY: tuple[Metric, ...] = (
    Metric(
        name="policy.loss",
        unit="1",
        merge=Merge.LAST,
        worse=Worse.NEITHER,
        meaning="The loss as computed, before any log filter hides a NaN.",
        formula="trainer",
        shape="a scalar",
    ),
    Metric(
        name="policy.entropy",
        unit="nat",
        merge=Merge.LAST,
        worse=Worse.BOTH,
        meaning="Mean entropy of the policy's next-token distribution.",
        formula="trainer",
        shape="a scalar",
    ),
    Metric(
        name="policy.learning_rate",
        unit="1",
        merge=Merge.LAST,
        worse=Worse.NEITHER,
        meaning="Learning rate in force.",
        formula="trainer",
        shape="a scalar",
    ),
    Metric(
        name="policy.loss_tokens",
        unit="{token}",
        merge=Merge.SUM,
        worse=Worse.DOWN,
        meaning="Tokens under the loss mask.",
        formula="N",
        shape="a scalar",
    ),
)
