"""The weight that OpenRLHF gives a token, against the loss itself: over ranks, micro-batches and releases."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from rlvitals.integrations.openrlhf import told
from rlvitals.integrations.openrlhf.arguments import Arguments
from rlvitals.integrations.openrlhf.weights import Weighting
from tests.client.integrations.openrlhf import DOTTED, namespace

RANKS, ACCUMULATION = 2, 3
dice = torch.Generator().manual_seed(2)
MASKS = (torch.rand(RANKS, ACCUMULATION, 4, 5, generator=dice) < 0.6).long()


def mean(loss: Tensor, mask: Tensor, by_sequence: bool, tokens: Any = None, rows: Any = None) -> Tensor:
    """One micro-batch's loss as OpenRLHF takes it, by what it was told of the whole optimizer step."""
    if not by_sequence:
        return (loss * mask).sum() / (mask.sum() if tokens is None else tokens) * (1 if tokens is None else RANKS)
    each = (loss * mask).sum(-1) / (mask.sum(-1) + 1e-8)
    seen = (mask.sum(-1) > 0).float()
    return (each * seen).sum() / (seen.sum() if rows is None else rows) * (1 if rows is None else RANKS)


@pytest.mark.parametrize("by_sequence", [False, True], ids=["token mean", "mean of completions"])
@pytest.mark.parametrize("release", ["since 0.10.4", "before"])
def test_weights_of_all_ranks_and_micro_batches_are_the_gradient_of_the_step(
    by_sequence: bool, release: str
) -> None:
    info: dict[str, Any] = {}
    if release == "since 0.10.4":
        rows = (MASKS.sum(-1) > 0).sum().float() / ACCUMULATION
        info = {"batch_num_tokens": MASKS.sum().float() / ACCUMULATION, "global_batch_size": rows}
    weighting = Weighting(
        by_sequence=by_sequence, dynamic=False, accumulation=ACCUMULATION, ranks=RANKS, updates=1
    )
    for rank in range(RANKS):
        for step in range(ACCUMULATION):
            mask = MASKS[rank, step]
            loss = torch.zeros(mask.shape, requires_grad=True)
            value = mean(loss, mask, by_sequence, info.get("batch_num_tokens"), info.get("global_batch_size"))
            # DeepSpeed takes the mean over ranks and micro-batches
            (expected,) = torch.autograd.grad(value / RANKS / ACCUMULATION, loss)
            found = weighting.weights(mask, {"logp": loss.detach(), **info})
            torch.testing.assert_close(found, expected)


def test_several_updates_of_a_rollout_are_told_as_their_root_mean_square() -> None:
    one = Weighting(by_sequence=False, dynamic=False, accumulation=1, ranks=1, updates=1)
    four = Weighting(by_sequence=False, dynamic=False, accumulation=1, ranks=1, updates=4)
    mask, seen = MASKS[0, 0], {"logp": torch.zeros(4, 5)}
    torch.testing.assert_close(four.weights(mask, seen) * 2, one.weights(mask, seen))


def test_dynamic_batches_of_a_release_that_does_not_say_its_divisor_have_no_weights() -> None:
    weighting = Weighting(by_sequence=False, dynamic=True, accumulation=1, ranks=1, updates=1)
    assert weighting.weights(MASKS[0, 0], {"logp": torch.zeros(4, 5)}) is None


@pytest.mark.parametrize(
    "settings",
    [
        {"algo.advantage.is_correction_level": "token"},
        {"actor.dual_clip": 3.0},
        {"actor.policy_loss_type": "gspo"},
        {"algo.kl.unbiased_gradient": True},
    ],
    ids=lambda settings: next(iter(settings)),
)
def test_where_tokens_weigh_otherwise_the_pull_is_missing_with_the_reason(settings: dict[str, Any]) -> None:
    assert told.shows_pull(Arguments(namespace(DOTTED)))
    arguments = Arguments(namespace({**DOTTED, **settings}))
    assert not told.shows_pull(arguments)
    assert "weighs tokens" in told.absent_reasons(arguments, critic=False)["kl.pull_ratio"]


@pytest.mark.parametrize(
    ("estimator", "unbiased", "form"),
    [
        ("k1", False, ("k1", "after")),
        ("k3", False, ("k3", "before and after")),
        ("k3", True, ("k3+", "none")),
        ("k1", True, ("k2", "none")),
    ],
)
def test_the_kl_term_has_the_slope_that_the_loss_has(
    estimator: str, unbiased: bool, form: tuple[str, str]
) -> None:
    settings = {"algo.kl.estimator": estimator, "algo.kl.unbiased_gradient": unbiased}
    found = Arguments(namespace({**DOTTED, **settings}), "0.11.2").form
    assert (found.estimator, found.clamp) == form
