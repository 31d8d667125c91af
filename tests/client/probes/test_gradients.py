"""Token weights of the losses, the policy pull, loss tokens and gradient norms."""

from __future__ import annotations

import math

import pytest
import torch

from rlvitals.probes.gradients import (
    LOSS_TYPES,
    tally_gradient_norm,
    tally_loss_tokens,
    tally_policy_pull,
    weights_for,
)

NAN, INF = math.nan, math.inf
MASK = torch.tensor([[1, 1, 1, 0], [1, 0, 0, 0], [0, 0, 0, 0]])


def pull(*arguments: torch.Tensor | None) -> float:
    return tally_policy_pull(*arguments).sums["policy.pull_sq"]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("loss_type", "expected"),
    [
        ("grpo", [[1 / 18], [1 / 6], [1 / 6]]),
        ("sapo", [[1 / 18], [1 / 6], [1 / 6]]),
        ("bnpo", [[1 / 8]]),
        ("dr_grpo", [[1 / 60]]),
        ("dapo", [[4 / 24]]),
        ("cispo", [[4 / 24]]),
        ("luspo", [[1 / 6]]),
    ],
)
def test_weights_follow_the_loss_type(loss_type: str, expected: list[list[float]]) -> None:
    found = weights_for(
        loss_type,
        MASK,
        accumulation=2,
        max_completion_length=10,
        num_items_in_batch=12,
        num_processes=2,
        steps_per_generation=2,
    )
    assert torch.allclose(found, torch.tensor(expected, dtype=torch.float64))
    assert found.expand(MASK.shape).shape == MASK.shape


@pytest.mark.parametrize("loss_type", ["grpo", "bnpo"])
def test_an_empty_mask_gives_finite_weights(loss_type: str) -> None:
    assert weights_for(loss_type, MASK * 0).isfinite().all()


def test_what_a_loss_type_needs_is_named() -> None:
    with pytest.raises(ValueError, match="max_completion_length: expected a number"):
        weights_for("dr_grpo", MASK)
    with pytest.raises(ValueError, match="num_items_in_batch: expected a number"):
        weights_for("dapo", MASK)
    with pytest.raises(ValueError, match=f"one of {', '.join(LOSS_TYPES)}, got 'ppo2'"):
        weights_for("ppo2", MASK)


def test_the_pull_is_the_norm_of_weight_times_advantage_times_ratio() -> None:
    logp, old = torch.zeros(3, 4), torch.full((3, 4), -math.log(2.0))
    advantages = torch.tensor([1.0, -3.0, 5.0])
    weight = weights_for("luspo", MASK)
    assert math.isclose(pull(logp, old, advantages, MASK, weight), (3 * 1 + 9) * 4 / 9, rel_tol=1e-6)
    assert math.isclose(pull(logp, None, advantages, MASK, weight), (3 * 1 + 9) / 9, rel_tol=1e-12)
    assert math.isclose(
        pull(logp, None, advantages.unsqueeze(1).expand(3, 4), MASK, weight), 12 / 9, rel_tol=1e-12
    )


def test_a_token_that_the_clip_holds_pulls_nothing_as_autograd_says() -> None:
    torch.manual_seed(0)
    logp = (torch.randn(6, 40, dtype=torch.float64) / 3).requires_grad_()
    old, advantages, mask = torch.randn(6, 40) / 9, torch.randn(6), torch.rand(6, 40) > 0.2
    ratio = (logp - old).exp()
    unclipped, clipped = ratio * advantages[:, None], ratio.clamp(0.8, 1.3) * advantages[:, None]
    (gradient,) = torch.autograd.grad((torch.minimum(unclipped, clipped) * mask / 7).sum(), logp)
    told = tally_policy_pull(logp, old, advantages, mask, torch.full((1, 1), 1 / 7), clip=(0.2, 0.3))
    assert told.sums["policy.pull_sq"] == pytest.approx(gradient.square().sum().item(), rel=1e-6)
    assert (gradient[mask] == 0).any()
    assert (gradient[mask] != 0).any()


def test_a_ratio_that_is_held_at_a_cap_still_pulls_with_it_as_autograd_says() -> None:
    torch.manual_seed(0)
    logp = (torch.randn(4, 20, dtype=torch.float64)).requires_grad_()
    old, advantages, mask = torch.randn(4, 20), torch.randn(4), torch.ones(4, 20)
    held = (logp - old).exp().clamp(max=1.5).detach()
    (gradient,) = torch.autograd.grad((held * advantages[:, None] * logp).sum(), logp)
    told = tally_policy_pull(logp, old, advantages, mask, torch.ones(1, 1), cap=1.5)
    assert told.sums["policy.pull_sq"] == pytest.approx(gradient.square().sum().item(), rel=1e-6)
    on_policy = tally_policy_pull(logp, None, advantages, mask, torch.ones(1, 1), cap=0.2)
    assert on_policy.sums["policy.pull_sq"] == pytest.approx(
        0.04 * 20 * advantages.square().sum().item(), rel=1e-6
    )


@pytest.mark.parametrize("bad", [NAN, INF, -INF])
@pytest.mark.parametrize("where", ["logp", "old", "advantages"])
def test_nan_pulls_are_left_out_and_padding_is_never_read(bad: float, where: str) -> None:
    tensors = {"logp": torch.zeros(3, 4), "old": torch.zeros(3, 4), "advantages": torch.ones(3, 4)}
    tensors[where][2, 3] = bad
    assert pull(*tensors.values(), MASK, torch.ones(1, 1)) == 4.0
    tensors[where][2, 3], tensors[where][0, 0] = 0.0, NAN
    assert pull(*tensors.values(), MASK, torch.ones(1, 1)) == 3.0
    tensors["logp"][0, 0], tensors["old"][0, 0], tensors["advantages"][0, 0] = -INF, -INF, 1.0
    assert pull(*tensors.values(), MASK, torch.ones(1, 1)) == 3.0


def test_loss_tokens_are_counted_under_the_mask_and_an_empty_mask_is_a_true_zero() -> None:
    assert tally_loss_tokens(MASK).measured().values == {"policy.loss_tokens": 4.0}
    assert tally_loss_tokens(MASK * 0).measured().values == {"policy.loss_tokens": 0.0}


@pytest.mark.parametrize(
    ("norm", "expected"), [(1.5, 0), (NAN, 1), (INF, 1), (-INF, 1), (torch.tensor(NAN), 1), ([1.0, INF, NAN], 2)]
)
def test_non_finite_gradient_norms_are_counted(norm: object, expected: int) -> None:
    values = tally_gradient_norm(norm).measured().values
    assert values["numerics.nonfinite_gradient"] == values["numerics.nonfinite"] == expected
