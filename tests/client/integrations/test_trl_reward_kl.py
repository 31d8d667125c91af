"""KL in the reward, worked out by hand on a few numbers: its size, its share of the advantages, and why not."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from rlvitals.integrations.trl import reward_kl
from rlvitals.integrations.trl.reward_kl import Scored
from rlvitals.probes.finish.kl import POLICY_OVERFLOWS
from rlvitals.probes.tally import Tally

BETA = 0.5
LOGP = torch.tensor([[-1.0, -2.0], [-1.5, -1.0], [-0.5, -0.5], [-2.0, -1.0]])
REF = torch.tensor([[-1.2, -2.0], [-1.0, -1.1], [-0.5, -0.9], [-2.2, -1.4]])
MASK = torch.tensor([[1, 1], [1, 0], [1, 1], [1, 1]])
REWARDS = np.array([1.0, 0.0, 2.0, 0.5])


class RLOOTrainer:
    """As much of it as is asked for."""

    beta, num_generations, ref_model = BETA, 2, None

    def __init__(self, **args: Any) -> None:
        self.args = SimpleNamespace(**args)


def left_out(values: torch.Tensor) -> torch.Tensor:
    pairs = values.double().view(-1, 2)
    return (pairs - pairs.flip(1)).view(-1)


def told(logp: torch.Tensor = LOGP, ref: torch.Tensor = REF, *, first: int = 0, **given: Any) -> Tally:
    penalty = BETA * ((logp - ref) * MASK).double().sum(1)
    advantages = left_out(torch.as_tensor(REWARDS) - penalty)
    shown = {
        "completion_ids": torch.arange(8).view(4, 2),
        "completion_mask": MASK,
        "advantages": advantages,
    } | given.pop("shown", {})
    totals = given.pop("totals", REWARDS)
    trainer = RLOOTrainer(**given)
    pieces = reward_kl.pieces(trainer, (logp, ref), shown, totals, first=first, vocabulary=16)
    return sum((launch().tally() for _, launch in pieces), Tally.zero())


def test_the_share_of_the_advantages_that_is_kl_is_the_one_worked_out_by_hand() -> None:
    measured = told().measured()
    away = (LOGP - REF)[MASK.bool()].double()
    assert measured.values["kl.k1"] == pytest.approx(float(away.mean()))
    tokens = MASK.double().sum(1)
    of_kl = -left_out(BETA * ((LOGP - REF) * MASK).sum(1))
    of_reward = left_out(torch.as_tensor(REWARDS))
    ratio = ((tokens * of_kl**2).sum() / (tokens * of_reward**2).sum()).sqrt()
    assert measured.values["kl.pull_ratio"] == pytest.approx(float(ratio), rel=1e-6)
    assert measured.values["kl.share_of_gradient"] == pytest.approx(float(ratio / (1 + ratio)), rel=1e-6)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"normalize_advantages": True}, reward_kl.NORMALISED),
        ({"first": 1}, reward_kl.CUT_GROUPS),
        ({"totals": None}, reward_kl.CUT_GROUPS),
        ({"shown": {"advantages": None}}, reward_kl.CUT_GROUPS),
        ({"totals": np.array([1.0, math.nan, 2.0, 0.5])}, reward_kl.UNSCORED),
    ],
)
def test_where_the_share_has_no_closed_form_the_reason_is_told_and_the_distance_still_is(
    given: dict[str, Any], reason: str
) -> None:
    measured = told(**given).measured()
    assert measured.missing["kl.pull_ratio"] == measured.missing["kl.share_of_gradient"] == reason
    assert "kl.k1" in measured.values
    assert "ratio.reference_max" in measured.values


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_log_prob_that_is_not_finite_is_counted_and_the_share_is_missing_as_the_advantage_is_no_number(
    value: float,
) -> None:
    broken = REF.clone()
    broken[0, 1] = value
    measured = told(ref=broken).measured()
    assert measured.values["numerics.nonfinite_reference"] == 1
    assert math.isfinite(measured.values["kl.k1"]), "without that token"
    assert "kl.pull_ratio" not in measured.values
    assert measured.missing["kl.pull_ratio"] == POLICY_OVERFLOWS


def test_log_probs_of_a_wrong_shape_tell_nothing() -> None:
    assert told(logp=LOGP, ref=REF, shown={"completion_mask": MASK[:, :1]}) == Tally.zero()


def test_only_the_first_two_passes_of_a_generation_are_kept_and_then_let_go() -> None:
    scored = Scored()
    scored.keep(LOGP)  # no generation is going on
    assert scored.take() is None
    scored.begin()
    for logp in (LOGP, REF, LOGP):
        scored.keep(logp)
    taken = scored.take()
    assert taken is not None
    assert taken[0].equal(LOGP)
    assert taken[1].equal(REF)
    assert scored.take() is None
    scored.begin()
    scored.keep(LOGP)  # no reference: beta is 0
    assert scored.take() is None
