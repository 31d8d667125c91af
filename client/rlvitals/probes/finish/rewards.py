"""Rewards, groups and advantages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rlvitals.probes.finish.tables import Family, Finding

if TYPE_CHECKING:
    from rlvitals.probes.tally import Tally

NO_REWARDS = "no finite reward in this step"
NO_GROUPS = "no group with two or more finite rewards"
NO_ADVANTAGES = "no finite advantage in this step"


def _rewards(tally: Tally) -> Iterator[Finding]:
    if "reward" not in tally.moments:
        return
    moments = tally.moments["reward"]
    yield "reward.mean", moments.mean if moments.count else NO_REWARDS
    yield "reward.std", moments.std if moments.std is not None else "fewer than two finite rewards in this step"


REWARDS = Family(
    quotients={
        "reward.group_std": ("reward.group_std", "reward.groups", 1.0, NO_GROUPS),
        "reward.zero_std_groups": ("reward.zero_std_groups", "reward.groups", 1.0, NO_GROUPS),
    },
    extremes={
        "reward.min": ("minima", "reward.seen", NO_REWARDS),
        "reward.max": ("maxima", "reward.seen", NO_REWARDS),
        "reward.advantage_abs_max": ("maxima", "advantage.seen", NO_ADVANTAGES),
    },
    findings=_rewards,
)
