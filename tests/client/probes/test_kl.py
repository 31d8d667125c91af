"""Closed forms against autograd, for each estimator and each way in which TRL aggregates its loss."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from rlvitals.probes import reduction
from rlvitals.probes.gradients import tally_policy_pull, weights_for
from rlvitals.probes.kl import ESTIMATORS, METRICS, measure_kl, tally_kl
from rlvitals.probes.kl_form import AFTER, BOTH, CLAMPS, FORMS, NONE, Form
from rlvitals.probes.reduction import Pending
from rlvitals.probes.tally import Tally

NAN, INF = math.nan, math.inf
ONE = torch.ones(1, 1)


def batch(rows: int = 5, width: int = 7, seed: int = 0) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """(logp, ref, mask, ids) in single precision, the first row with no token under the mask."""
    draw = torch.Generator().manual_seed(seed)
    logp = -3 * torch.rand(rows, width, generator=draw)
    ref = logp + torch.randn(rows, width, generator=draw)
    mask = (torch.rand(rows, width, generator=draw) < 0.7).long()
    mask[0] = 0
    return logp, ref, mask, torch.randint(0, 50, (rows, width), generator=draw)


def kl_of(estimator: str, logp: Tensor, ref: Tensor, clamp: str = "none") -> Tensor:
    """The trainers' own arithmetic, in the precision of ``logp``."""
    if estimator == "k3+":
        straight = kl_of("k2", logp, ref)
        return straight - straight.detach() + kl_of("k3", logp, ref, clamp).detach()
    if estimator == "low_var_kl":
        return kl_of("k3", logp, ref, BOTH)
    d = ref.to(logp.dtype) - logp
    if clamp == BOTH:
        d = d.clamp(-20, 20)
    each = {"k1": -d, "k2": d * d / 2, "k3": torch.exp(d) - 1 - d, "abs": d.abs()}[estimator]
    return each if clamp == NONE else each.clamp(-10, 10)


def unclamped(estimator: str) -> str:
    return "k3" if estimator == "low_var_kl" else estimator


def aggregate(loss_type: str, per_token: Tensor, mask: Tensor) -> Tensor:
    """The trainer's aggregation: 2 accumulation steps, cap 9, 40 items, 2 processes, 4 steps a generation."""
    if loss_type == "grpo":
        return ((per_token * mask).sum(-1) / mask.sum(-1).clamp(min=1.0)).mean() / 2
    if loss_type == "bnpo":
        return (per_token * mask).sum() / mask.sum().clamp(min=1.0) / 2
    if loss_type == "dr_grpo":
        return (per_token * mask).sum() / (per_token.size(0) * 9) / 2
    if loss_type == "luspo":
        return (per_token * mask).sum(-1).mean() / 2
    return (per_token * mask).sum() / (40 / 2 * 2 / 4)


def weights(loss_type: str, mask: Tensor) -> Tensor:
    return weights_for(
        loss_type,
        mask,
        accumulation=2,
        max_completion_length=9,
        num_items_in_batch=torch.tensor(40),
        num_processes=2,
        steps_per_generation=4,
    )


@pytest.mark.parametrize("loss_type", ["grpo", "bnpo", "dr_grpo", "dapo", "luspo"])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_the_gradient_norm_is_autograds(estimator: str, loss_type: str) -> None:
    logp, ref, mask, ids = batch()
    leaf = logp.double().requires_grad_()
    loss = 0.04 * aggregate(loss_type, kl_of(estimator, leaf, ref), mask)
    (gradient,) = torch.autograd.grad(loss, leaf)
    measured = tally_kl(
        logp, ref, mask, weights(loss_type, mask), coef=0.04, estimator=estimator, ids=ids
    ).measured()
    assert math.isclose(measured.values["kl.grad_norm"], gradient.norm().item(), rel_tol=1e-12)


@pytest.mark.parametrize("loss_type", ["grpo", "bnpo", "dr_grpo", "dapo"])
def test_the_pull_ratio_is_the_quotient_of_both_terms_autograd_norms(loss_type: str) -> None:
    logp, ref, mask, _ = batch()
    old, advantages = logp + 0.1, torch.tensor([1.0, -0.5, 0.25, 0.0, 2.0])
    leaf = logp.double().requires_grad_()
    policy = aggregate(loss_type, -torch.exp(leaf - old.double()) * advantages.unsqueeze(1), mask)
    pull = 0.04 * aggregate(loss_type, kl_of("k3", leaf, ref), mask)
    norms = [torch.autograd.grad(term, leaf)[0].norm().item() for term in (pull, policy)]
    weight = weights(loss_type, mask)
    tally = tally_kl(logp, ref, mask, weight, coef=0.04) + tally_policy_pull(logp, old, advantages, mask, weight)
    assert math.isclose(tally.measured().values["kl.pull_ratio"], norms[0] / norms[1], rel_tol=1e-6)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_the_plain_norms_are_of_the_derivative_with_weight_1(estimator: str) -> None:
    logp, ref, mask, ids = batch()
    leaf = logp.double().requires_grad_()
    (slope,) = torch.autograd.grad((kl_of(unclamped(estimator), leaf, ref) * mask).sum(), leaf)
    values = tally_kl(logp, ref, mask, ONE, coef=1.0, estimator=estimator, ids=ids).measured().values
    assert math.isclose(values["kl.grad_l2"], slope.norm().item(), rel_tol=1e-12)
    assert math.isclose(values["kl.grad_rms"], slope.norm().item() / math.sqrt(int(mask.sum())), rel_tol=1e-12)
    assert math.isclose(values["kl.grad_max"], slope.abs().max().item(), rel_tol=1e-12)


def test_the_means_are_over_tokens_under_the_mask() -> None:
    logp, ref, mask, _ = batch()
    ref[2, 3], mask[2, 3] = logp[2, 3] + 5, 1
    chosen = mask.bool()
    values = tally_kl(logp, ref, mask, ONE, coef=1.0).measured().values
    for estimator in ("k1", "k2", "k3", "abs"):
        exact = kl_of(estimator, logp.double(), ref)[chosen]
        assert math.isclose(values[f"kl.{estimator}"], exact.mean().item(), rel_tol=1e-12, abs_tol=1e-12)
        assert math.isclose(values[f"kl.{estimator}_max"], exact.max().item(), rel_tol=1e-12)
    k3 = kl_of("k3", logp.double(), ref)[chosen]
    assert math.isclose(values["kl.capped"], k3.clamp_max(10).mean().item(), rel_tol=1e-12)
    assert values["kl.clamped_share"] == (k3 > 10).double().mean().item() > 0


def test_one_forced_token_is_named_and_owns_the_gradient() -> None:
    logp, ref, mask, ids = batch()
    ref[3, 2], logp[3, 2], mask[3, 2], ids[3, 2] = -0.01, -15.0, 1, 77
    measured = tally_kl(logp, ref, mask, ONE, coef=1.0, ids=ids, sample_offset=100).measured()
    peak, share = (measured.extremes[n] for n in ("kl.grad_max", "kl.grad_top_id_share"))
    assert (peak.token_id, peak.sample, peak.position, peak.masked) == (77, 103, 2, False)
    assert (share.token_id, share.sample, share.position) == (77, 103, 2)
    assert share.value == measured.values["kl.grad_top_id_share"] > 0.999
    assert measured.values["kl.grad_max"] > 1e6


def test_an_overflow_is_plus_infinity_with_its_token_and_nothing_becomes_nan() -> None:
    logp, ref, mask, ids = batch()
    logp[2, 1], mask[2, 1], ids[2, 1] = -800.0, 1, 9
    weight = torch.full((5, 7), 0.1)
    measured = tally_kl(logp, ref, mask, weight, coef=0.04, ids=ids).measured()
    for name in ("kl.k3", "kl.grad_norm", "kl.grad_l2", "kl.grad_rms", "kl.grad_max"):
        assert measured.values[name] == INF
    assert measured.extremes["kl.grad_max"].token_id == 9
    assert measured.values["kl.grad_top_id_share"] == 1.0
    assert math.isfinite(measured.values["kl.capped"])
    assert not any(math.isnan(value) for value in measured.values.values())


def test_a_weight_or_a_coefficient_of_zero_pulls_nothing_even_where_the_derivative_overflows() -> None:
    logp, ref, mask = torch.tensor([[-800.0, -1.0]]), torch.zeros(1, 2), torch.ones(1, 2)
    for weight, coef in ((torch.tensor([[0.0, 1.0]]), 0.04), (torch.zeros(1, 1), 0.04), (ONE, 0.0)):
        assert math.isfinite(tally_kl(logp, ref, mask, weight, coef=coef).measured().values["kl.grad_norm"])


@pytest.mark.parametrize("bad", [NAN, INF, -INF])
@pytest.mark.parametrize("where", ["logp", "ref"])
@pytest.mark.parametrize("trained", [True, False])
def test_a_non_finite_log_prob_is_left_out_of_every_sum(bad: float, where: str, trained: bool) -> None:
    logp, ref, mask, ids = batch()
    mask[1, 4] = 0
    clean = tally_kl(logp, ref, mask, ONE, coef=0.04, ids=ids)
    (logp if where == "logp" else ref)[1, 4] = bad
    mask[1, 4] = int(trained)
    assert tally_kl(logp, ref, mask, ONE, coef=0.04, ids=ids) == clean


@pytest.mark.parametrize("shape", [(3, 4), (0, 4), (3, 0)])
def test_without_a_token_under_the_mask_all_is_missing_with_a_reason(shape: tuple[int, int]) -> None:
    zeros = torch.zeros(shape)
    tally = tally_kl(zeros, zeros, zeros, ONE, coef=0.04, ids=zeros.long())
    tally += tally_policy_pull(zeros, None, torch.ones(shape[0]), zeros, ONE)
    measured = tally.measured()
    assert not measured.values
    assert set(METRICS) - set(measured.missing) <= {"kl.pull_ratio"}
    assert all("loss mask" in reason for reason in measured.missing.values())


def test_the_pull_ratio_is_missing_where_all_advantages_are_zero() -> None:
    logp, ref, mask, _ = batch()
    tally = tally_kl(logp, ref, mask, ONE, coef=0.04) + tally_policy_pull(logp, None, torch.zeros(5), mask, ONE)
    measured = tally.measured()
    assert "kl.pull_ratio" not in measured.values
    assert "all advantages are zero" in measured.missing["kl.pull_ratio"]


def test_equal_policies_have_a_kl_of_exactly_zero_and_no_token_stands_out() -> None:
    logp, _, mask, ids = batch()
    measured = tally_kl(logp, logp, mask, ONE, coef=0.04, ids=ids).measured()
    assert measured.values["kl.k3"] == measured.values["kl.grad_norm"] == measured.values["kl.grad_max"] == 0
    assert measured.extremes["kl.grad_max"].token_id is None
    assert "kl.grad_top_id_share" in measured.missing


@settings(max_examples=30)
@given(st.integers(0, 1000), st.lists(st.integers(0, 12), max_size=3), st.sampled_from(ESTIMATORS))
def test_micro_batches_add_up_to_the_batch(seed: int, cuts: list[int], estimator: str) -> None:
    logp, ref, mask, ids = batch(12, 5, seed)
    weight = weights("grpo", mask)
    whole = tally_kl(logp, ref, mask, weight, coef=0.04, estimator=estimator, ids=ids).measured()
    ends = sorted({0, *cuts, 12})
    parts = [
        tally_kl(
            logp[a:b],
            ref[a:b],
            mask[a:b],
            weight[a:b],
            coef=0.04,
            estimator=estimator,
            ids=ids[a:b],
            sample_offset=a,
        )
        for a, b in pairwise(ends)
    ]
    split = sum(reversed(parts), Tally.zero()).measured()
    assert split.extremes["kl.grad_max"] == whole.extremes["kl.grad_max"]
    assert split.missing == whole.missing
    for name, value in whole.values.items():
        assert math.isclose(split.values[name], value, rel_tol=1e-9, abs_tol=1e-12)


@pytest.mark.parametrize("chunk", [1, 3, 10, 64])
def test_the_size_of_the_blocks_changes_nothing(monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    logp, ref, mask, ids = batch(20, 6)
    logp[4, 1], logp[5, 5] = -NAN, -40.0
    whole = tally_kl(logp, ref, mask, weights("grpo", mask), coef=0.04, ids=ids).measured()
    monkeypatch.setattr(reduction, "CHUNK", chunk)
    again = tally_kl(logp, ref, mask, weights("grpo", mask), coef=0.04, ids=ids).measured()
    assert again.extremes.keys() == whole.extremes.keys()
    assert again.extremes["kl.grad_max"] == whole.extremes["kl.grad_max"]
    assert again.values == pytest.approx(whole.values, rel=1e-12)


def test_the_form_that_never_waits_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    logp, ref, mask, ids = batch(20, 6)
    logp[4, 1], logp[5, 5], logp[6, 0], mask[5, 5] = -NAN, -40.0, -INF, 1
    arguments: dict[str, Any] = {"coef": 0.04, "ids": ids}
    direct = tally_kl(logp, ref, mask, ONE, **arguments).measured()
    monkeypatch.setattr(reduction, "on_host", lambda tensor: False)
    pending = Pending(
        [measure_kl(logp, ref, mask, ONE, **arguments), measure_kl(logp, ref, mask * 0, ONE, **arguments)]
    )
    assert pending.ready()
    dense = pending.tally().measured()
    assert dense.values == pytest.approx(direct.values, rel=1e-9)
    assert dense.extremes["kl.grad_max"] == direct.extremes["kl.grad_max"]
    assert dense.extremes["kl.grad_top_id_share"].token_id == ids[5, 5]


def test_nothing_is_kept_of_the_gradient_graph_and_no_generator_is_moved() -> None:
    logp, ref, mask, ids = batch()
    leaf = logp.clone().requires_grad_()
    before = torch.get_rng_state(), np.random.get_state()[1].copy()
    work = measure_kl(leaf * 1.0, ref, mask, ONE, coef=0.04, ids=ids)
    assert not any(part.requires_grad for part in work.parts)
    assert leaf.grad is None
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.array_equal(np.random.get_state()[1], before[1])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_log_probs_of_any_precision_are_summed_in_double(dtype: torch.dtype) -> None:
    logp, ref, mask, ids = batch()
    expected = tally_kl(logp.to(dtype).double(), ref.to(dtype).double(), mask, ONE, coef=1.0, ids=ids)
    found = tally_kl(logp.to(dtype), ref.to(dtype), mask.bool(), ONE, coef=1.0, ids=ids.int())
    # the distance to an overflow is the type's own
    assert replace(found, minima={}) == replace(expected, minima={})


def test_an_unknown_estimator_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(ValueError, match="one of k1, k2, k3, abs, k3\\+, low_var_kl, got 'k4'"):
        tally_kl(ONE, ONE, ONE, ONE, coef=1.0, estimator="k4")
    with pytest.raises(ValueError, match="clamp: expected one of none, after, before and after, got 'both'"):
        tally_kl(ONE, ONE, ONE, ONE, coef=1.0, clamp="both")


@pytest.mark.parametrize("clamp", CLAMPS)
@pytest.mark.parametrize("estimator", ["k1", "k2", "k3", "abs", "k3+"])
def test_the_gradient_norm_under_clamps_is_the_one_that_the_loss_has(estimator: str, clamp: str) -> None:
    logp, ref, mask, ids = batch(seed=3)
    distances = torch.tensor([-15.0, -11.1, -10.9, -4.5, 2.5, 2.7, 4.4, 7.0, 12.0, 25.0, 60.0])
    ref[1, :6], ref[2, :5] = logp[1, :6] + distances[:6], logp[2, :5] + distances[6:]
    mask[1], mask[2] = 1, 1
    leaf = logp.double().requires_grad_()
    exact = kl_of(estimator, leaf, ref, clamp)
    for weight in (weights("grpo", mask), torch.rand(logp.shape, generator=torch.Generator().manual_seed(1))):
        (gradient,) = torch.autograd.grad(0.04 * (exact * mask * weight).sum(), leaf, retain_graph=True)
        values = (
            tally_kl(logp, ref, mask, weight, coef=0.04, estimator=estimator, clamp=clamp, ids=ids)
            .measured()
            .values
        )
        assert math.isclose(values["kl.grad_norm"], gradient.norm().item(), rel_tol=1e-9)
    assert math.isclose(values["kl.in_loss"], exact[mask.bool()].mean().item(), rel_tol=1e-9)
    (slope,) = torch.autograd.grad((exact * mask).sum(), leaf)
    dead = int(((slope == 0) & mask.bool()).sum())
    assert math.isclose(values["kl.dead_zone_share"] * int(mask.sum()), dead, abs_tol=1e-9)
    assert (dead > 0) == (clamp != NONE and estimator != "k3+")
    (raw,) = torch.autograd.grad((kl_of(estimator, leaf, ref) * mask).sum(), leaf)
    assert math.isclose(values["kl.grad_l2"], raw.norm().item(), rel_tol=1e-12), "raw: as if there were no clamp"


@pytest.mark.parametrize("form", FORMS.items(), ids=str)
def test_each_trainers_form_has_the_value_and_the_derivative_of_its_own_arithmetic(
    form: tuple[tuple[str, str], Form],
) -> None:
    (trainer, _), own = form
    for distance in (-25.0, -11.5, -3.0, 0.0, 2.5, 3.0, 7.0, 15.0, 60.0, 90.0):
        leaf = torch.tensor(0.0).requires_grad_()
        value = kl_of(own.estimator, leaf, torch.tensor(distance), own.clamp)
        (slope,) = torch.autograd.grad(value, leaf)
        # in single precision exp overflows at 88.7 nats, in ours at 709.8
        if distance < 88 or own.clamped:
            assert own.evaluated(distance) == pytest.approx(value.item(), rel=1e-5, abs=1e-6), trainer
            assert own.pull(distance, overflow=88.7) == pytest.approx(slope.item(), rel=1e-5, nan_ok=True), trainer
        else:
            assert abs(own.slope(distance)) in (1.0, 90.0) or abs(own.slope(distance)) > 1e38


@pytest.mark.parametrize(("clamp", "poisoned"), [(NONE, 0), (AFTER, 1), (BOTH, 0)])
def test_an_overflow_in_front_of_a_clamp_is_told_while_the_loss_is_finite(clamp: str, poisoned: int) -> None:
    logp, ref, mask, ids = batch()
    logp[2, 1], ref[2, 1], mask[2, 1], ids[2, 1] = -90.5, -0.5, 1, 9
    leaf = logp.clone().requires_grad_()
    loss = kl_of("k3", leaf, ref, clamp).masked_fill(mask == 0, 0).sum()
    (gradient,) = torch.autograd.grad(loss, leaf)
    assert bool(gradient.isnan().any()) == bool(poisoned)
    tally = tally_kl(logp, ref, mask, ONE, coef=1.0, clamp=clamp, ids=ids)
    tally += tally_policy_pull(logp, None, torch.ones(5), mask, ONE)
    measured = tally.measured()
    assert measured.values["kl.nan_gradient_tokens"] == poisoned
    assert math.isnan(measured.values["kl.grad_norm"]) == bool(poisoned)
    assert ("kl.pull_ratio" in measured.values) == (not poisoned)
    margin = measured.extremes["kl.overflow_margin"]
    assert margin.value == measured.values["kl.overflow_margin"] == pytest.approx(88.7228 - 90, abs=1e-3)
    assert (margin.token_id, margin.sample, margin.position, margin.masked) == (9, 2, 1, False)
    if poisoned:
        assert math.isfinite(loss.item())
        assert "in front of a clamp" in measured.missing["kl.share_of_gradient"]
        assert measured.extremes["kl.nan_gradient_tokens"].token_id == 9


@pytest.mark.parametrize(
    ("dtype", "limit"),
    [(torch.float16, 11.09), (torch.bfloat16, 88.72), (torch.float32, 88.72), (torch.float64, 709.78)],
)
def test_the_margin_is_to_the_overflow_of_the_log_probs_own_type(dtype: torch.dtype, limit: float) -> None:
    logp, ref = torch.tensor([[-4.0, -1.0]], dtype=dtype), torch.tensor([[-1.0, -1.0]], dtype=dtype)
    values = tally_kl(logp, ref, torch.ones(1, 2), ONE, coef=1.0).measured().values
    assert values["kl.overflow_margin"] == pytest.approx(limit - 3, abs=0.01)
    near = torch.tensor([limit - 0.01, limit + 0.01], dtype=torch.float64)
    assert near.exp().lt(torch.finfo(dtype).max).tolist() == [True, False]


def test_the_largest_of_each_estimator_is_at_its_own_token() -> None:
    logp, ref = torch.tensor([[-1.0, -6.0, -0.5]]), torch.tensor([[-8.0, -1.0, -0.5]])
    ids = torch.tensor([[11, 12, 13]])
    measured = tally_kl(logp, ref, torch.ones(1, 3), ONE, coef=1.0, ids=ids).measured()
    expected = {"kl.k1_max": (7.0, 11), "kl.k2_max": (24.5, 11), "kl.k3_max": (math.exp(5) - 6, 12)}
    for name, (value, token) in {**expected, "kl.abs_max": (7.0, 11)}.items():
        assert measured.values[name] == pytest.approx(value, rel=1e-12)
        assert measured.extremes[name].token_id == token


def test_the_share_of_the_gradient_is_all_of_it_where_no_advantage_pulls() -> None:
    logp, ref, mask, _ = batch()
    pulls = [tally_policy_pull(logp, None, torch.full((5,), a), mask, ONE) for a in (0.0, 1.0)]
    kl = tally_kl(logp, ref, mask, ONE, coef=1.0)
    assert (kl + pulls[0]).measured().values["kl.share_of_gradient"] == 1.0
    values = (kl + pulls[1]).measured().values
    ratio = values["kl.pull_ratio"]
    assert math.isclose(values["kl.share_of_gradient"], ratio / (1 + ratio), rel_tol=1e-12)
    still = tally_kl(logp, logp, mask, ONE, coef=1.0) + pulls[0]
    assert "neither" in still.measured().missing["kl.share_of_gradient"]


def test_a_policy_above_the_reference_everywhere_has_its_extremes_among_tokens_that_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reduction, "CHUNK", 1)
    logp = torch.zeros(4, 3)
    ref = torch.tensor([[-4.0, -5.0, 0.0], [-3.0, -3.5, 0.0], [-2.0, -9.0, 0.0], [-6.0, -6.0, 0.0]])
    mask = torch.tensor([1, 1, 0]).expand(4, 3)
    measured = tally_kl(logp, ref, mask, ONE, coef=1.0).measured()
    assert measured.values["kl.overflow_margin"] == pytest.approx(88.7228 + 2, abs=1e-3)
    assert measured.extremes["kl.overflow_margin"].sample == 2
    assert measured.values["kl.k1_max"] == 9.0


@pytest.mark.parametrize(("left", "right"), [(0, 4), (4, 0), (2, 3)])
@pytest.mark.parametrize("padding", [0.0, NAN, -INF])
def test_padding_on_either_side_changes_nothing_but_positions(left: int, right: int, padding: float) -> None:
    logp, ref, mask, ids = batch()
    logp[3, 2], mask[3, 2] = -9.0, 1
    clean = tally_kl(logp, ref, mask, weights("grpo", mask), coef=0.04, ids=ids).measured()
    wide = [
        torch.nn.functional.pad(x, (left, right), value=fill)
        for x, fill in ((logp, padding), (ref, padding), (mask, 0), (ids, 0))
    ]
    padded = tally_kl(*wide[:3], weights("grpo", wide[2]), coef=0.04, ids=wide[3]).measured()
    assert padded.values == pytest.approx(clean.values, rel=1e-12)
    assert padded.extremes["kl.grad_max"].position == clean.extremes["kl.grad_max"].position + left


def test_of_several_turns_only_those_of_the_policy_count() -> None:
    """Two turns with a tool's answer in between, which is far from the reference and hidden by the mask."""
    logp = torch.tensor([[-1.0, -2.0, -30.0, -40.0, -1.5, -0.5]])
    ref = torch.full((1, 6), -1.0)
    mask = torch.tensor([[1, 1, 0, 0, 1, 1]])
    ids = torch.tensor([[5, 6, 90, 91, 7, 8]])
    apart = torch.tensor([0, 1, 4, 5])
    measured = tally_kl(logp, ref, mask, weights("grpo", mask), coef=0.04, ids=ids).measured()
    alone = [x[:, apart] for x in (logp, ref, mask, ids)]
    expected = tally_kl(*alone[:3], weights("grpo", alone[2]), coef=0.04, ids=alone[3]).measured()
    assert measured.values == pytest.approx(expected.values, rel=1e-12)
    assert measured.extremes["kl.grad_max"].token_id == expected.extremes["kl.grad_max"].token_id == 6


def test_one_completion_is_a_batch_too() -> None:
    logp, ref = torch.tensor([[-1.0, -2.0]]), torch.tensor([[-2.0, -1.0]])
    values = tally_kl(logp, ref, torch.ones(1, 2), ONE, coef=0.5).measured().values
    assert values["kl.k1"] == 0.0
    assert values["kl.abs"] == 1.0
    assert values["kl.k2"] == 0.5
    assert values["kl.k3"] == pytest.approx((math.e + 1 / math.e - 2) / 2, rel=1e-12)
    assert values["kl.grad_norm"] == pytest.approx(0.5 * math.hypot(math.e - 1, 1 - 1 / math.e), rel=1e-12)
    assert values["kl.overflow_margin"] == pytest.approx(87.7228, abs=1e-3)


def test_the_id_that_owns_the_gradient_is_under_the_mask_even_where_no_token_of_it_is_the_largest() -> None:
    logp, ref = torch.tensor([[-3.0, -3.0, -3.2]]), torch.full((1, 3), -1.0)
    measured = tally_kl(logp, ref, torch.ones(1, 3), ONE, coef=1.0, ids=torch.tensor([[4, 4, 5]])).measured()
    share = measured.extremes["kl.grad_top_id_share"]
    assert (share.token_id, share.masked, share.position) == (4, False, None)
