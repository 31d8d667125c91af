"""Reward functions one by one."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rlvitals.probes.components import tally_components
from rlvitals.probes.finish.components import constant_components
from rlvitals.probes.groups import tally_advantages, tally_rewards
from rlvitals.probes.lengths import tally_lengths
from rlvitals.probes.reward_range import RewardRange
from rlvitals.probes.tally import Tally

NAN, INF = math.nan, math.inf


def test_each_function_has_its_mean_spread_and_share_of_the_total() -> None:
    measured = tally_components([[1.0, 2.0], [3.0, 2.0], [5.0, 2.0]], ["right", "polite"]).measured()
    assert measured.values["rewards/right/mean"] == 3.0
    assert measured.values["rewards/right/std"] == 2.0
    assert measured.values["rewards/right/variance_share"] == pytest.approx(1.0)
    assert measured.values["rewards/polite/variance_share"] == pytest.approx(0.0)


def test_shares_are_covariances_with_the_weighted_total_and_add_up_to_1() -> None:
    rewards = np.random.default_rng(0).normal(size=(64, 3)) @ np.array([[1, 0.5, 0], [0, 1, -0.9], [0, 0, 1]])
    weights = np.array([1.0, 0.1, 2.0])
    total = rewards @ weights
    values = tally_components(rewards, ["a", "b", "c"], weights).measured().values
    for column, name in enumerate("abc"):
        expected = np.cov(weights[column] * rewards[:, column], total)[0, 1] / total.var(ddof=1)
        assert values[f"rewards/{name}/variance_share"] == pytest.approx(expected, rel=1e-9)
    assert sum(values[f"rewards/{name}/variance_share"] for name in "abc") == pytest.approx(1.0)


def test_constant_functions_are_counted_and_named() -> None:
    tally = tally_components([[0.1, 1.0, 5.0], [0.1, 0.0, 5.0], [0.1, 1.0, NAN]], ["format", "right", "length"])
    measured = tally.measured()
    assert measured.values["reward.components_constant"] == 2
    assert measured.extremes["reward.components_constant"].token == "format, length"
    assert constant_components(tally) == ("format", "length")


def test_none_nan_and_infinities_are_left_out_of_their_function_and_tell_themselves_apart() -> None:
    measured = tally_components([[1.0, None], [NAN, None], [3.0, INF], [-INF, 1.0]], ["a", "b"]).measured()
    assert measured.values["rewards/a/mean"] == 2.0
    assert measured.values["rewards/b/mean"] == 1.0
    assert "fewer than two" in measured.missing["rewards/b/std"]
    never = tally_components([[None], [NAN]], ["a"]).measured()
    assert "no finite value" in never.missing["rewards/a/mean"]
    assert "two or more" in never.missing["reward.components_constant"]
    assert not never.values


def test_a_total_that_does_not_vary_has_no_variance_to_share() -> None:
    measured = tally_components([[1.0, 0.0], [0.0, 1.0]], ["a", "b"]).measured()
    assert "does not vary" in measured.missing["rewards/a/variance_share"]
    assert measured.values["reward.components_constant"] == 0


def test_without_completions_all_is_missing() -> None:
    measured = tally_components(np.zeros((0, 2)), ["a", "b"]).measured()
    assert not measured.values
    assert set(measured.missing) >= {"rewards/a/mean", "rewards/b/variance_share", "reward.components_constant"}


def test_two_functions_of_one_name_are_numbered() -> None:
    values = tally_components([[1.0, 2.0], [1.0, 3.0]], ["r", "r"]).measured().values
    assert (values["rewards/r/mean"], values["rewards/r_1/mean"]) == (1.0, 2.5)


def test_a_tensor_in_half_precision_is_counted_as_the_array_of_its_values() -> None:
    rewards = torch.rand(6, 2, generator=torch.Generator().manual_seed(0)).to(torch.bfloat16)
    assert tally_components(rewards, "ab") == tally_components(rewards.double().numpy(), "ab")


ROWS = st.lists(st.lists(st.sampled_from([0.0, 1.0, -2.5, None, INF]), min_size=2, max_size=2), max_size=12)


@settings(max_examples=30)
@given(ROWS, st.integers(0, 12))
def test_any_split_adds_up_to_the_whole(rows: list[list[float | None]], cut: int) -> None:
    def part(some: list[list[float | None]]) -> object:
        return tally_components(np.array(some, np.float64).reshape(-1, 2), ["a", "b"], [1.0, 0.5])

    split = (part(rows[cut:]) + part(rows[:cut])).measured()  # type: ignore[operator]
    whole = part(rows).measured()  # type: ignore[attr-defined]
    assert split.missing == whole.missing
    assert split.values == pytest.approx(whole.values, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    ("rewards", "names", "weights", "match"),
    [
        ([1.0], ["a"], None, r"\(completions, functions\)"),
        ([[1.0]], ["a", "b"], None, "each of 1 reward functions, got 2"),
        ([[1.0]], ["a"], [1.0, 2.0], "each of 1 reward functions, got 2"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(
    rewards: list[object], names: list[str], weights: list[float] | None, match: str
) -> None:
    with pytest.raises(ValueError, match=match):
        tally_components(rewards, names, weights)


def test_all_that_is_kept_of_rewards_and_lengths_survives_the_way_between_ranks() -> None:
    tally = tally_components([[1.0, 2.0], [NAN, INF], [0.0, None]], ["a/b", "c d"], [1.0, 0.5])
    tally += tally_rewards([1.0, 1.0, None, 0.0], group_ids=[1, 1, 2, 2], reward_range=RewardRange.of(0, 1))
    tally += tally_advantages([0.0, 1.0, NAN], equal=[True, False, False])
    tally += tally_lengths([3, 8], [2, 7], {2}, 8, finish_reasons=["stop", None])
    back = Tally.from_dict(json.loads(json.dumps(tally.to_dict(), allow_nan=False)))
    assert repr(back.measured()) == repr(tally.measured())
