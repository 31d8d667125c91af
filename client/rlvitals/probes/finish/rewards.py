"""Rewards, groups and advantages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rlvitals.probes.finish.components import component_findings, component_places
from rlvitals.probes.finish.tables import Family, Finding

if TYPE_CHECKING:
    from rlvitals.probes.tally import Tally

NO_REWARDS = "no finite reward in this step"
NO_COMPLETIONS = "no completion was rewarded in this step"
NO_GROUPS = "no group with two or more finite rewards"
SINGLE = "every group holds one completion: a spread needs two or more"
NO_ADVANTAGES = "no finite advantage in this step"
NO_EQUAL = "no advantage of a group whose rewards are all equal in this step"


def _rewards(tally: Tally) -> Iterator[Finding]:
    if "reward" not in tally.moments:
        return
    moments = tally.moments["reward"]
    yield "reward.mean", moments.mean if moments.count else NO_REWARDS
    yield "reward.std", moments.std if moments.std is not None else "fewer than two finite rewards in this step"
    yield from _groups(tally)


def _groups(tally: Tally) -> Iterator[Finding]:
    count = tally.counts
    everything, groups = count.get("reward.all_groups", 0), count.get("reward.groups", 0)
    single = bool(everything) and count["reward.single_groups"] == everything
    reason = SINGLE if single else NO_GROUPS
    yield "reward.group_size", count["reward.completions"] / everything if everything else NO_COMPLETIONS
    yield "reward.single_groups", count["reward.single_groups"] / everything if everything else NO_COMPLETIONS
    yield "reward.group_std", tally.sums["reward.group_std"] / groups if groups else reason
    yield "reward.zero_std_groups", count["reward.zero_std_groups"] / groups if groups else reason
    if "reward.judged_groups" in count:
        judged = count["reward.judged_groups"]
        for name in ("reward.all_right_groups", "reward.all_wrong_groups", "reward.all_equal_groups"):
            yield name, count[name] / judged if judged else reason
        yield "reward.range_low", tally.minima["reward.range_low"].value
        yield "reward.range_high", tally.maxima["reward.range_high"].value
        yield "reward.range_given", float(not count["reward.range_observed"])


def _advantages(tally: Tally) -> Iterator[Finding]:
    if "advantage.seen" not in tally.counts:
        return
    seen, zero = tally.counts["advantage.seen"], tally.counts.get("advantage.zero")
    if zero is not None:
        yield "reward.advantage_zero_share", zero / seen if seen else NO_ADVANTAGES
        yield "reward.advantages_all_zero", float(zero == seen) if seen else NO_ADVANTAGES


def _findings(tally: Tally) -> Iterator[Finding]:
    yield from _rewards(tally)
    yield from _advantages(tally)
    yield from component_findings(tally)


REWARDS = Family(
    extremes={
        "reward.min": ("minima", "reward.seen", NO_REWARDS),
        "reward.max": ("maxima", "reward.seen", NO_REWARDS),
        "reward.advantage_abs_max": ("maxima", "advantage.seen", NO_ADVANTAGES),
        "reward.advantage_equal_group_max": ("maxima", "advantage.equal_group", NO_EQUAL),
    },
    histograms={"reward.group_std": "reward.group_std"},
    signed={"reward.mean": ("reward.down", "reward.up")},
    findings=_findings,
    places=component_places,
)
