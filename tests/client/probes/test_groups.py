"""Rewards in groups, with None, NaN and infinities, and the largest advantage."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rlvitals.probes.groups import in_equal_group, tally_advantages, tally_rewards, total_rewards
from rlvitals.probes.reward_range import RewardRange
from rlvitals.probes.tally import Tally

NAN, INF = math.nan, math.inf


def test_moments_and_extremes_are_of_the_finite_rewards_with_their_sample() -> None:
    measured = tally_rewards([1.0, 3.0, None, INF, 2.0, -INF, NAN, 6.0], 2, sample_offset=8).measured()
    assert measured.values["reward.mean"] == 3.0
    assert math.isclose(measured.values["reward.std"], float(np.std([1, 3, 2, 6], ddof=1)))
    assert (measured.values["reward.min"], measured.extremes["reward.min"].sample) == (1.0, 8)
    assert (measured.values["reward.max"], measured.extremes["reward.max"].sample) == (6.0, 15)
    assert measured.values["numerics.nonfinite_rewards"] == 4
    assert measured.extremes["numerics.nonfinite_rewards"].sample == 10


def test_groups_of_fewer_than_two_finite_rewards_are_left_out() -> None:
    measured = tally_rewards([1.0, 3.0, None, 5.0, NAN, INF, 7.0], 2).measured()
    assert measured.values["reward.group_std"] == math.sqrt(2)
    assert measured.values["reward.zero_std_groups"] == 0.0


@pytest.mark.parametrize(
    ("rewards", "share"),
    [
        ([1, 1, 2, 2], 1.0),
        ([1, 1, 2, 3], 0.5),
        ([1e6, 1e6 + 0.5, 0, 1], 0.5),
        ([0, 1e-7, 0, 1e-5], 0.5),
        ([1, 1 + 1e-5, 2, 2.5], 0.0),
        ([0.1 + 0.2, 0.3, -5, -5], 1.0),
    ],
)
def test_a_group_is_equal_within_a_millionth_of_its_size(rewards: list[float], share: float) -> None:
    assert tally_rewards(rewards, 2).measured().values["reward.zero_std_groups"] == share


def test_the_group_std_is_the_mean_over_groups_as_torch_takes_it() -> None:
    rewards = torch.rand(6, 4, generator=torch.Generator().manual_seed(0)).double()
    values = tally_rewards(rewards.reshape(-1), 4).measured().values
    assert math.isclose(values["reward.group_std"], rewards.std(dim=1).mean().item(), rel_tol=1e-12)


@pytest.mark.parametrize("rewards", [[], [None], [NAN, INF], [1.0]])
def test_what_cannot_be_said_of_few_rewards_is_missing_with_a_reason(rewards: list[float | None]) -> None:
    measured = tally_rewards(rewards, 2).measured()
    assert "two or more" in measured.missing["reward.group_std"]
    assert "two or more" in measured.missing["reward.zero_std_groups"]
    assert "fewer than two" in measured.missing["reward.std"]
    assert ("reward.mean" in measured.values) == (rewards == [1.0])
    assert not any(math.isnan(value) for value in measured.values.values())


def test_huge_rewards_overflow_to_infinity_without_a_warning() -> None:
    values = tally_rewards([1e308, -1e308, 1e308, 1e308], 2).measured().values
    assert values["reward.zero_std_groups"] == 0.5
    assert values["reward.group_std"] == INF


def test_a_row_without_any_reward_is_nan_and_not_the_0_of_a_nansum() -> None:
    totals = total_rewards([[1.0, None], [NAN, None], [2.0, 3.0], [INF, 1.0]], [1.0, 0.5])
    assert totals[[0, 2, 3]].tolist() == [1.0, 3.5, INF]
    assert math.isnan(totals[1])
    with pytest.raises(ValueError, match=r"expected \(completions, functions\)"):
        total_rewards([1.0, 2.0])


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0, None, NAN]), min_size=1, max_size=24), st.integers(1, 4))
def test_generations_add_up_to_the_batch(rewards: list[float | None], groups: int) -> None:
    whole, cut = tally_rewards(rewards, 3).measured(), 3 * groups
    parts = tally_rewards(rewards[cut:], 3, sample_offset=cut) + tally_rewards(rewards[:cut], 3)
    split = (Tally.zero() + parts).measured()
    assert split.missing == whole.missing
    assert split.values == pytest.approx(whole.values, rel=1e-12, abs=1e-12)
    assert repr(split.extremes) == repr(whole.extremes) or split.extremes.keys() == whole.extremes.keys()


def test_the_largest_advantage_is_named_and_non_finite_ones_are_left_out() -> None:
    measured = tally_advantages([0.5, -2.0, NAN, INF, -INF], sample_offset=4).measured()
    largest = measured.extremes["reward.advantage_abs_max"]
    assert (measured.values["reward.advantage_abs_max"], largest.sample, largest.position) == (2.0, 5, None)
    by_token = tally_advantages(torch.tensor([[0.0, 1.0], [-3.0, 2.0]])).measured()
    largest = by_token.extremes["reward.advantage_abs_max"]
    assert (largest.value, largest.sample, largest.position) == (3.0, 1, 0)


@pytest.mark.parametrize("advantages", [[], [NAN, INF]])
def test_without_a_finite_advantage_the_largest_is_missing(advantages: list[float]) -> None:
    measured = tally_advantages(advantages).measured()
    names = ("reward.advantage_abs_max", "reward.advantages_all_zero", "reward.advantage_zero_share")
    assert measured.missing == dict.fromkeys(names, "no finite advantage in this step")
    assert not measured.values


def test_the_bound_of_group_z_scores_is_attained_by_one_different_reward() -> None:
    rewards = torch.tensor([1.0, 0, 0, 0, 0, 0, 0, 0], dtype=torch.float64)
    scores = (rewards - rewards.mean()) / rewards.std()
    found = tally_advantages(scores).measured().values["reward.advantage_abs_max"]
    assert math.isclose(found, 7 / math.sqrt(8), rel_tol=1e-12)


def test_a_group_size_of_0_is_refused() -> None:
    with pytest.raises(ValueError, match="group_size: expected 1 or more, got 0"):
        tally_rewards([1.0], 0)


def test_lists_arrays_and_tensors_count_the_same() -> None:
    rewards = [0.5, 1.0, 0.0, 0.25]
    expected = tally_rewards(rewards, 2, reward_range=RewardRange.of(0, 1))
    for form in (np.array, torch.tensor, lambda values: torch.tensor(values, dtype=torch.bfloat16)):
        assert tally_rewards(form(rewards), 2, reward_range=RewardRange.of(0, 1)) == expected


SIDES = ("reward.all_right_groups", "reward.all_wrong_groups", "reward.all_equal_groups")


def sides(rewards: list[float], reward_range: RewardRange | None) -> tuple[float, ...]:
    values = tally_rewards(rewards, 2, reward_range=reward_range).measured().values
    return tuple(values[name] for name in SIDES)


def test_equal_groups_are_told_apart_by_the_given_range() -> None:
    rewards = [1, 1, 0, 0, 0.5, 0.5, 0, 1]
    assert sides(rewards, RewardRange.of(0, 1)) == (0.25, 0.25, 0.25)
    assert sides(rewards, RewardRange.of(-1, 2)) == (0.0, 0.0, 0.75)
    assert sides([0.1 + 0.2] * 2, RewardRange.of(0, 0.3)) == (1.0, 0.0, 0.0)


def test_without_a_given_range_the_one_that_the_run_has_shown_is_used_and_told() -> None:
    seen = RewardRange().including([0.0, None, 2.0]).including([NAN, 1.0, INF])
    measured = tally_rewards([2, 2, 1, 1], 2, reward_range=seen).measured()
    assert tuple(measured.values[name] for name in SIDES) == (0.5, 0.0, 0.5)
    told = ("reward.range_low", "reward.range_high", "reward.range_given")
    assert tuple(measured.values[name] for name in told) == (0.0, 2.0, 0.0)
    given = RewardRange.of(0, 1).including([5.0])
    assert tally_rewards([1, 1], 2, reward_range=given).measured().values["reward.range_given"] == 1.0
    assert (given.low, given.high) == (0.0, 1.0)


@pytest.mark.parametrize("unknown", [None, RewardRange(), RewardRange().including([1.0, 1.0])])
def test_while_no_range_is_known_the_sides_are_missing_and_not_all_wrong(unknown: RewardRange | None) -> None:
    measured = tally_rewards([1.0, 1.0], 2, reward_range=unknown).measured()
    assert all("range" in measured.missing[name] for name in SIDES)
    assert measured.values["reward.zero_std_groups"] == 1.0


@pytest.mark.parametrize("bounds", [(1, 0), (0, 0), (NAN, 1), (0, INF)])
def test_a_range_that_is_none_is_refused(bounds: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="the less one first"):
        RewardRange.of(*bounds)


def test_groups_of_one_completion_have_no_spread_and_say_so() -> None:
    measured = tally_rewards([1.0, 0.0, 1.0], 1, reward_range=RewardRange.of(0, 1)).measured()
    for name in ("reward.group_std", "reward.zero_std_groups", *SIDES):
        assert measured.missing[name] == "every group holds one completion: a spread needs two or more"
    assert (measured.values["reward.group_size"], measured.values["reward.single_groups"]) == (1.0, 1.0)


def test_groups_of_unequal_sizes_in_any_order_are_told_by_their_ids() -> None:
    rewards = [1.0, 0.0, 1.0, 3.0, 0.0, 7.0]
    ids = ["b", "a", "b", "c", "a", "c"]
    values = tally_rewards(rewards, group_ids=ids).measured().values
    assert math.isclose(values["reward.group_std"], math.sqrt(8) / 3)
    assert math.isclose(values["reward.zero_std_groups"], 2 / 3)
    lone = tally_rewards([1.0, 2.0, 4.0], group_ids=torch.tensor([7, 5, 7])).measured().values
    assert (lone["reward.group_size"], lone["reward.single_groups"]) == (1.5, 0.5)
    assert math.isclose(lone["reward.group_std"], 3 / math.sqrt(2))


@pytest.mark.parametrize(
    ("arguments", "match"),
    [({}, "neither"), ({"group_size": 2, "group_ids": [1, 1]}, "both"), ({"group_ids": [1]}, "each of 2")],
)
def test_groups_are_given_in_one_way(arguments: dict[str, object], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        tally_rewards([1.0, 2.0], **arguments)  # type: ignore[arg-type]


REWARDS = st.lists(st.sampled_from([0.0, 0.5, 1.0, None, NAN, INF]), min_size=1, max_size=16)


@given(REWARDS, st.integers(1, 5))
def test_neighbours_and_ids_of_neighbours_are_the_same_groups(rewards: list[float | None], size: int) -> None:
    ids = [place // size for place in range(len(rewards))]
    for known in (None, RewardRange.of(0, 1)):
        by_size = tally_rewards(rewards, size, reward_range=known)
        by_id = tally_rewards(rewards, group_ids=ids, reward_range=known)
        assert repr(by_size) == repr(by_id)


@given(st.lists(st.sampled_from([0.0, 1.0, -2.0, NAN, INF, -INF]), max_size=12), st.integers(0, 12))
def test_advantages_of_any_split_add_up(values: list[float], cut: int) -> None:
    equal = [place % 3 == 0 for place in range(len(values))]
    whole = tally_advantages(values, equal=equal)
    parts = tally_advantages(values[cut:], equal=equal[cut:], sample_offset=min(cut, len(values)))
    assert parts + tally_advantages(values[:cut], equal=equal[:cut]) == whole


def test_all_zero_is_said_of_finite_advantages_only() -> None:
    values = tally_advantages([0.0, -0.0, NAN]).measured().values
    assert (values["reward.advantages_all_zero"], values["reward.advantage_zero_share"]) == (1.0, 1.0)
    values = tally_advantages([0.0, 1e-30]).measured().values
    assert (values["reward.advantages_all_zero"], values["reward.advantage_zero_share"]) == (0.0, 0.5)


def test_padding_is_hidden_and_not_multiplied_away() -> None:
    advantages, mask = torch.tensor([[1.0, NAN], [2.0, 9.0]]), torch.tensor([[1, 0], [1, 0]])
    measured = tally_advantages(advantages, mask=mask).measured()
    assert measured.values["reward.advantage_abs_max"] == 2.0
    assert tally_advantages(advantages, mask=torch.zeros(2, 2)).measured().values == {}


def test_the_float32_trap_of_a_tiny_epsilon_is_seen_inside_all_equal_groups() -> None:
    rewards = torch.full((7,), 0.7)  # the float32 mean of seven of these is one ulp off
    advantages = (rewards - rewards.mean()) / (rewards.std() + 1e-9)
    assert advantages.abs().max() > 0.1
    mixed = torch.cat([advantages, torch.tensor([5.0, -5.0, 0, 0, 0, 0, 0])])
    equal = in_equal_group([*rewards.tolist(), 1, 0, 0, 0, 0, 0, 0], 7)
    measured = tally_advantages(mixed, equal=equal).measured()
    assert measured.values["reward.advantage_equal_group_max"] == advantages.abs().max().item()
    assert measured.values["reward.advantage_abs_max"] == 5.0
    none = tally_advantages([1.0, -1.0], equal=[False, False]).measured()
    assert "all equal" in none.missing["reward.advantage_equal_group_max"]


def test_rewards_and_the_spread_of_each_group_are_drawn_as_distributions() -> None:
    shown = tally_rewards([0.0, 1.0, -1.0, math.nan, 1.0, 1.0], 2).measured().histograms
    edges, counts = shown["reward.mean"]
    assert (sum(counts), min(edges) <= -1.0, max(edges) > 1.0) == (5, True, True)
    assert sum(shown["reward.group_std"][1]) == 2


def test_a_step_without_a_finite_reward_has_no_distribution() -> None:
    assert tally_rewards([math.nan, math.inf, -math.inf], 3).measured().histograms == {}
