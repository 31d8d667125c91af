"""Rewards in groups, with None, NaN and infinities, and the largest advantage."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rlvitals.probes.groups import tally_advantages, tally_rewards, total_rewards
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
    assert measured.missing == {"reward.advantage_abs_max": "no finite advantage in this step"}
    assert not measured.values


def test_the_bound_of_group_z_scores_is_attained_by_one_different_reward() -> None:
    rewards = torch.tensor([1.0, 0, 0, 0, 0, 0, 0, 0], dtype=torch.float64)
    scores = (rewards - rewards.mean()) / rewards.std()
    found = tally_advantages(scores).measured().values["reward.advantage_abs_max"]
    assert math.isclose(found, 7 / math.sqrt(8), rel_tol=1e-12)


def test_a_group_size_of_0_is_refused() -> None:
    with pytest.raises(ValueError, match="group_size: expected 1 or more, got 0"):
        tally_rewards([1.0], 0)
