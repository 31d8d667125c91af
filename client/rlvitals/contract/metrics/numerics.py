"""Counts of NaN, +Inf and -Inf; zero is healthy."""

from __future__ import annotations

from rlvitals.contract.metrics.metric import Merge, Metric, Worse

NUMERICS: tuple[Metric, ...] = (
    Metric(
        name="numerics.nonfinite",
        unit="{value}",
        merge=Merge.SUM,
        worse=Worse.UP,
        meaning=(
            "All non-finite values found this step in loss, gradient norm, log-probs under the mask "
            "and advantages."
        ),
        formula="sum of the census",
        shape="any tensor",
    ),
    Metric(
        name="numerics.nonfinite_loss",
        unit="{value}",
        merge=Merge.SUM,
        worse=Worse.UP,
        meaning="Non-finite micro-batch losses.",
        formula="census",
        shape="any tensor",
    ),
    Metric(
        name="numerics.nonfinite_gradient",
        unit="{value}",
        merge=Merge.SUM,
        worse=Worse.UP,
        meaning="Non-finite gradient norms.",
        formula="census",
        shape="any tensor",
    ),
    Metric(
        name="numerics.nonfinite_logprobs",
        unit="{value}",
        merge=Merge.SUM,
        worse=Worse.UP,
        meaning="Non-finite policy, old or reference log-probs under the loss mask.",
        formula="census",
        shape="any tensor",
    ),
    Metric(
        name="numerics.nonfinite_advantages",
        unit="{value}",
        merge=Merge.SUM,
        worse=Worse.UP,
        meaning="Non-finite advantages.",
        formula="census",
        shape="any tensor",
    ),
    Metric(
        name="numerics.nonfinite_rewards",
        unit="{value}",
        merge=Merge.SUM,
        worse=Worse.UP,
        meaning="Rewards that are NaN, infinite or None in every reward function.",
        formula="census",
        shape="any tensor",
    ),
    Metric(
        name="numerics.nonfinite_padding",
        unit="{value}",
        merge=Merge.SUM,
        worse=Worse.NEITHER,
        meaning="Non-finite log-probs outside the loss mask: a notice, not an alert.",
        formula="census",
        shape="any tensor",
    ),
)
