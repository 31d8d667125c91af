"""Truncated completions count less, by exactly the weight, and by nothing else."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from rlvitals import guards
from rlvitals.probes.arguments import ProbeArgumentError, ShapeError
from tests.client.guards.conftest import Taken

CUT = [True, False, True]


@pytest.mark.parametrize("make", [torch.tensor, np.array, list])
@pytest.mark.parametrize("weight", [0.0, 0.25, 1.0])
def test_the_weight_is_applied_to_truncated_ones_alone(taken: Taken, make: Any, weight: float) -> None:
    advantages = make([1.0, -2.0, -3.0])
    scaled = guards.scale_truncated(advantages, CUT, weight=weight)
    assert list(map(float, scaled)) == [weight * 1.0, -2.0, weight * -3.0]
    assert list(map(float, advantages)) == [1.0, -2.0, -3.0], "a copy"
    values = taken().values
    assert values["guard.truncated_advantages"] == 2
    assert values["guard.advantage_removed_share"] == pytest.approx((1 - weight) * 4 / 6)


def test_by_token_and_with_its_dtype_and_graph() -> None:
    advantages = torch.ones(3, 2, dtype=torch.float16, requires_grad=True)
    scaled = guards.scale_truncated(advantages, torch.tensor([1, 0, 0]), weight=0.5)
    assert scaled.dtype == torch.float16
    scaled.sum().backward()
    assert advantages.grad is not None
    assert advantages.grad.tolist() == [[0.5, 0.5], [1.0, 1.0], [1.0, 1.0]]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("make", [torch.tensor, np.array])
def test_a_weight_of_zero_selects_and_never_multiplies(taken: Taken, make: Any, value: float) -> None:
    scaled = guards.scale_truncated(make([value, value, 1.0]), CUT, weight=0.0)
    assert float(scaled[0]) == 0.0
    assert float(scaled[1]) == pytest.approx(value, nan_ok=True), "not truncated: not our business"
    assert taken().values["guard.advantage_removed_share"] == 1.0


def test_without_any_advantage_there_is_no_share(taken: Taken) -> None:
    guards.scale_truncated(torch.zeros(3), CUT, weight=0.0)
    measured = taken()
    assert measured.missing["guard.advantage_removed_share"] == "all advantages were zero"
    assert "guard.garbled_share" not in measured.values


@pytest.mark.parametrize("weight", [-0.1, 1.1, math.nan])
def test_a_weight_outside_is_refused(weight: float) -> None:
    with pytest.raises(ProbeArgumentError, match="weight"):
        guards.scale_truncated(torch.ones(1), [True], weight=weight)


def test_flags_of_another_batch_are_refused() -> None:
    for advantages in (torch.ones(3), np.ones(3)):
        with pytest.raises(ShapeError, match="truncated"):
            guards.scale_truncated(advantages, [True, False])


class Trainer:
    """As much of TRL's as the guard looks at."""

    def __init__(self, **settings: Any) -> None:
        self.max_completion_length = 3
        self.mask_truncated_completions = False
        self.processing_class = SimpleNamespace(eos_token_id=0, pad_token_id=9)
        self.__dict__ |= settings

    def _generate_and_score_completions(self) -> dict[str, Any]:
        return {
            "completion_ids": torch.tensor([[5, 6, 7], [5, 6, 0], [5, 0, 9]]),
            "completion_mask": torch.tensor([[1, 1, 1], [1, 1, 1], [1, 1, 0]]),
            "advantages": torch.tensor([1.0, 2.0, 3.0]),
        }


def test_a_trainer_is_guarded_by_one_line_and_told_of_the_better_way(caplog: pytest.LogCaptureFixture) -> None:
    trainer = Trainer()
    guards.guard_truncated(trainer)
    assert trainer._generate_and_score_completions()["advantages"].tolist() == [0.0, 2.0, 3.0]
    assert "mask_truncated_completions=True" in caplog.text


def test_a_trainer_that_masks_them_itself_is_left_alone() -> None:
    trainer = Trainer(mask_truncated_completions=True)
    guards.guard_truncated(trainer)
    assert trainer._generate_and_score_completions()["advantages"].tolist() == [1.0, 2.0, 3.0]


def test_a_guard_that_fails_leaves_the_advantages_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLVITALS_RAISE", "0")
    trainer = Trainer(processing_class=None)
    guards.guard_truncated(trainer, weight=0.5)
    assert trainer._generate_and_score_completions()["advantages"].tolist() == [1.0, 2.0, 3.0]


def test_another_kind_of_trainer_is_refused() -> None:
    with pytest.raises(TypeError, match="advantages"):
        guards.guard_truncated(SimpleNamespace())
