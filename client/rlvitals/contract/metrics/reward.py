"""Rewards, groups and advantages."""

from __future__ import annotations

from rlvitals.contract.metrics.metric import Merge, Metric, Worse

REWARD: tuple[Metric, ...] = (
    Metric(
        name="reward.mean",
        unit="1",
        merge=Merge.TALLY,
        worse=Worse.DOWN,
        meaning="Mean of the finite rewards.",
        formula="sum / count",
        shape="(N,) rewards",
    ),
    Metric(
        name="reward.std",
        unit="1",
        merge=Merge.TALLY,
        worse=Worse.NEITHER,
        meaning="Standard deviation of the finite rewards over the batch.",
        formula="moments",
        shape="(N,) rewards",
    ),
    Metric(
        name="reward.min",
        unit="1",
        merge=Merge.MIN,
        worse=Worse.NEITHER,
        meaning="Least finite reward.",
        formula="min",
        shape="(N,) rewards",
    ),
    Metric(
        name="reward.max",
        unit="1",
        merge=Merge.MAX,
        worse=Worse.NEITHER,
        meaning="Greatest finite reward.",
        formula="max",
        shape="(N,) rewards",
    ),
    Metric(
        name="reward.group_std",
        unit="1",
        merge=Merge.TALLY,
        worse=Worse.DOWN,
        meaning="Mean standard deviation within groups of two or more.",
        formula="signals 1.6",
        shape="(N,) rewards",
    ),
    Metric(
        name="reward.zero_std_groups",
        unit="1",
        merge=Merge.TALLY,
        worse=Worse.UP,
        meaning="Share of groups of two or more in which all rewards are equal: no advantage, no gradient.",
        formula="signals 1.6",
        shape="(N,) rewards",
    ),
    Metric(
        name="reward.advantage_abs_max",
        unit="1",
        merge=Merge.MAX,
        worse=Worse.UP,
        meaning="Largest |advantage|; group z-scores cannot exceed (G-1)/sqrt(G).",
        formula="signals 1.6",
        shape="(N,) rewards",
    ),
)
