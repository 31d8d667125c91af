"""Importance ratios: extremes with their token, effective sample size, clip shares, and honest absence."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from rlvitals.probes import ratios, reduction
from rlvitals.probes.log_bins import RATIO_BINS
from rlvitals.probes.ratios import (
    METRICS,
    REFERENCE,
    ROLLOUT,
    missing,
    tally_ratios,
    tally_reference,
    tally_rollout,
)
from rlvitals.probes.tally import Tally

NAN, INF = math.nan, math.inf
EPS = {"eps_low": 0.2, "eps_high": 0.28}


def batch(rows: int = 6, width: int = 8, seed: int = 0, spread: float = 0.3) -> dict[str, Tensor]:
    draw = torch.Generator().manual_seed(seed)
    old = -3 * torch.rand(rows, width, generator=draw)
    return {
        "logp": old + spread * torch.randn(rows, width, generator=draw),
        "old": old,
        "mask": (torch.rand(rows, width, generator=draw) < 0.7).long(),
        "advantages": torch.randn(rows, generator=draw),
        "ids": torch.randint(0, 50, (rows, width), generator=draw),
    }


def exact_ratios(given: dict[str, Tensor]) -> Tensor:
    return torch.exp(given["logp"].double() - given["old"].double())[given["mask"].bool()]


def test_every_statistic_is_that_of_the_ratios_under_the_mask() -> None:
    given = batch()
    r, values = exact_ratios(given), tally_ratios(**given, **EPS).measured().values
    assert math.isclose(values["ratio.max"], r.max().item(), rel_tol=1e-12)
    assert math.isclose(values["ratio.min"], r.min().item(), rel_tol=1e-12)
    assert math.isclose(values["ratio.ess"], (r.sum() ** 2 / (len(r) * (r**2).sum())).item(), rel_tol=1e-12)
    assert math.isclose(values["ratio.approx_kl"], (r - 1 - r.log()).mean().item(), rel_tol=1e-9)
    exact = r.log().abs().max().item()
    assert exact * (1 - 1e-12) <= values["ratio.log_abs_p999"] <= exact * 1.165


def test_clip_shares_are_trls_definition() -> None:
    given = batch() | {"advantages": torch.tensor([1.0, -1.0, 0.5, -0.5, 2.0, -2.0])}
    r = torch.exp(given["logp"].double() - given["old"].double())
    a, m = given["advantages"].unsqueeze(1), given["mask"].bool()
    low = ((r < 0.8) & (a < 0))[m].double().mean().item()
    high = ((r > 1.28) & (a > 0))[m].double().mean().item()
    assert low > 0 < high
    for advantages in (given["advantages"], a.expand_as(r)):
        values = tally_ratios(**given | {"advantages": advantages}, **EPS).measured().values
        assert math.isclose(values["ratio.clip_low_share"], low, rel_tol=1e-12)
        assert math.isclose(values["ratio.clip_high_share"], high, rel_tol=1e-12)
        assert math.isclose(values["ratio.clip_share"], low + high, rel_tol=1e-12)


def test_the_extremes_name_token_position_and_sample() -> None:
    given = batch()
    for row, position, token_id, value in ((4, 3, 91, 0.0), (2, 6, 92, -9.0)):
        given["logp"][row, position], given["old"][row, position] = value, -4.0
        given["mask"][row, position], given["ids"][row, position] = 1, token_id
    extremes = tally_ratios(**given, **EPS, sample_offset=10).measured().extremes
    top, least = extremes["ratio.max"], extremes["ratio.min"]
    assert (top.token_id, top.position, top.sample, top.masked) == (91, 3, 14, False)
    assert (least.token_id, least.position, least.sample) == (92, 6, 12)
    assert math.isclose(top.value, math.exp(4))
    assert math.isclose(least.value, math.exp(-5))


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_an_extreme_on_one_side_of_1_does_not_hide_behind_masked_tokens(sign: float) -> None:
    given = batch()
    given["logp"] = given["old"] + sign * (0.1 + 0.01 * torch.arange(48).reshape(6, 8))
    r, values = exact_ratios(given), tally_ratios(**given, **EPS).measured().values
    assert math.isclose(values["ratio.max"], r.max().item(), rel_tol=1e-6)
    assert math.isclose(values["ratio.min"], r.min().item(), rel_tol=1e-6)


def test_equal_log_probs_give_exactly_1_everywhere() -> None:
    given = batch(spread=0.0)
    measured = tally_ratios(**given, **EPS).measured()
    assert measured.values == {
        "ratio.max": 1.0, "ratio.min": 1.0, "ratio.ess": 1.0, "ratio.approx_kl": 0.0,
        "ratio.log_abs_p999": 0.0, "ratio.clip_low_share": 0.0, "ratio.clip_high_share": 0.0,
        "ratio.beyond_count": 0.0, "ratio.clip_share": 0.0,
    }  # fmt: skip


def test_a_ratio_that_overflows_is_plus_infinity_with_its_token_and_the_sample_size_is_one() -> None:
    given = batch()
    given["logp"][1, 1], given["old"][1, 1], given["mask"][1, 1], given["ids"][1, 1] = 0.0, -800.0, 1, 7
    measured = tally_ratios(**given, **EPS).measured()
    assert measured.values["ratio.max"] == measured.values["ratio.approx_kl"] == INF
    assert measured.extremes["ratio.max"].token_id == 7
    assert measured.values["ratio.ess"] == 1 / int(given["mask"].sum())
    assert measured.values["ratio.log_abs_p999"] == 800.0
    assert not any(math.isnan(value) for value in measured.values.values())


def test_a_ratio_that_vanishes_is_named_too() -> None:
    given = batch()
    given["logp"][1, 1], given["old"][1, 1], given["mask"][1, 1] = -800.0, 0.0, 1
    measured = tally_ratios(**given, **EPS).measured()
    assert measured.values["ratio.min"] == 0.0
    assert (measured.extremes["ratio.min"].sample, measured.extremes["ratio.min"].position) == (1, 1)


@pytest.mark.parametrize("bad", [NAN, INF, -INF])
@pytest.mark.parametrize("where", ["logp", "old"])
@pytest.mark.parametrize("trained", [True, False])
def test_a_non_finite_log_prob_is_left_out_of_every_sum(bad: float, where: str, trained: bool) -> None:
    given = batch()
    given["mask"][2, 2] = 0
    clean = tally_ratios(**given, **EPS)
    given[where][2, 2] = bad
    given["mask"][2, 2] = int(trained)
    assert tally_ratios(**given, **EPS) == clean


@pytest.mark.parametrize("bad", [NAN, INF, -INF])
def test_a_non_finite_advantage_clips_by_its_sign_or_not_at_all(bad: float) -> None:
    given = batch()
    given["advantages"][:] = bad
    values = tally_ratios(**given, **EPS).measured().values
    assert (values["ratio.clip_high_share"] > 0) == (bad == INF)
    assert (values["ratio.clip_low_share"] > 0) == (bad == -INF)


def test_without_old_log_probs_the_ratios_are_missing_and_not_1() -> None:
    given = batch() | {"old": None}
    measured = tally_ratios(**given, **EPS).measured()  # type: ignore[arg-type]
    assert not measured.values
    assert set(measured.missing) == set(METRICS)
    assert all(reason.startswith("not measured:") for reason in measured.missing.values())
    assert missing(("ratio.max",), "not measured: why").measured().missing == {"ratio.max": "not measured: why"}


@pytest.mark.parametrize("shape", [(3, 4), (0, 4), (3, 0)])
def test_without_a_token_under_the_mask_all_is_missing_with_a_reason(shape: tuple[int, int]) -> None:
    zeros = torch.zeros(shape)
    measured = tally_ratios(zeros, zeros, zeros, torch.ones(shape[0]), zeros.long(), **EPS).measured()
    assert not measured.values
    assert set(measured.missing) == set(METRICS)


@settings(max_examples=30)
@given(st.integers(0, 1000), st.integers(0, 6))
def test_micro_batches_add_up_to_the_batch(seed: int, cut: int) -> None:
    given = batch(seed=seed)
    whole = tally_ratios(**given, **EPS).measured()
    parts = [
        tally_ratios(**{k: v[piece] for k, v in given.items()}, **EPS, sample_offset=piece.start)
        for piece in (slice(cut, 6), slice(0, cut))
    ]
    split = sum(parts, Tally.zero()).measured()
    assert split.extremes == whole.extremes
    assert split.histograms == whole.histograms
    assert split.values == pytest.approx(whole.values, rel=1e-9)


@pytest.mark.parametrize("on_host", [True, False])
def test_blocks_and_the_form_that_never_waits_give_the_same(
    monkeypatch: pytest.MonkeyPatch, on_host: bool
) -> None:
    given = batch(rows=20)
    given["logp"][4, 4] = -INF
    whole = tally_ratios(**given, **EPS).measured()
    monkeypatch.setattr(reduction, "CHUNK", 10)
    monkeypatch.setattr(reduction, "on_host", lambda tensor: on_host)
    again = tally_ratios(**given, **EPS).measured()
    assert (again.extremes, again.histograms) == (whole.extremes, whole.histograms)
    assert again.values == pytest.approx(whole.values, rel=1e-12)


def test_the_tail_of_the_ratios_is_read_from_96_bins() -> None:
    width = 4000
    logp = torch.zeros(1, width)
    logp[0, :8] = 0.5  # 0.2 % of the tokens
    values = (
        tally_ratios(logp, torch.zeros(1, width), torch.ones(1, width), torch.ones(1), **EPS).measured().values
    )
    assert 0.5 <= values["ratio.log_abs_p999"] <= 0.5 * 1.165
    assert RATIO_BINS.count == 96


def test_the_mismatch_with_the_sampler_is_a_mean_over_tokens_that_have_both() -> None:
    logp, mask = torch.tensor([[-1.0, -2.0, -3.0, -4.0]]), torch.tensor([[1, 1, 1, 0]])
    rollout = torch.tensor([[-1.5, NAN, -3.25, -99.0]])
    values = tally_rollout(logp, rollout, mask).measured().values
    assert values["ratio.rollout_logp_diff"] == 0.375
    apart = (math.exp(-1) - math.exp(-1.5) + math.exp(-3) - math.exp(-3.25)) / 2
    assert math.isclose(values["ratio.rollout_prob_diff"], apart, rel_tol=1e-12)
    assert "no log-probs" in tally_rollout(logp, None, mask).measured().missing["ratio.rollout_logp_diff"]
    empty = tally_rollout(logp, rollout, mask * 0).measured()
    assert set(empty.missing) == set(ROLLOUT)


def test_the_gradient_graph_and_the_generators_are_left_alone() -> None:
    given = batch()
    given["logp"] = given["logp"].requires_grad_() * 1.0
    before = torch.get_rng_state(), np.random.get_state()[1].copy()
    work = ratios.measure_ratios(**given, **EPS)
    assert not any(part.requires_grad for part in work.parts)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.array_equal(np.random.get_state()[1], before[1])


def test_trainer_against_sampler_is_told_with_the_token_where_they_differ_most() -> None:
    given = batch(spread=0.1)
    logp, rollout, mask, ids = given["logp"], given["old"], given["mask"], given["ids"]
    logp[1, 2], rollout[1, 2], mask[1, 2], ids[1, 2] = -9.0, -1.0, 1, 77
    measured = tally_rollout(logp, rollout, mask, ids, sample_offset=5).measured()
    r = exact_ratios(given)
    assert set(ROLLOUT) == set(measured.values)
    least = measured.extremes["ratio.rollout_min"]
    assert (least.token_id, least.sample, least.position, least.masked) == (77, 6, 2, False)
    assert math.isclose(measured.values["ratio.rollout_min"], math.exp(-8), rel_tol=1e-12)
    assert math.isclose(measured.values["ratio.rollout_max"], r.max().item(), rel_tol=1e-12)
    ess = (r.sum() ** 2 / (len(r) * (r**2).sum())).item()
    assert math.isclose(measured.values["ratio.rollout_ess"], ess, rel_tol=1e-12)
    exact = (r - 1 - r.log()).mean().item()
    assert math.isclose(measured.values["ratio.rollout_approx_kl"], exact, rel_tol=1e-9)
    assert measured.values["ratio.rollout_beyond_count"] == 1


def test_policy_over_reference_is_measured_apart_from_new_over_old() -> None:
    given = batch()
    new = tally_ratios(**given, **EPS)
    reference = tally_reference(given["logp"], given["old"] - 1.0, given["mask"], given["ids"])
    values = (new + reference).measured().values
    assert set(METRICS) | set(REFERENCE) == set(values)
    assert math.isclose(values["ratio.reference_max"], values["ratio.max"] * math.e, rel_tol=1e-6)
    assert math.isclose(values["ratio.reference_ess"], values["ratio.ess"], rel_tol=1e-6)
    assert set(tally_reference(given["logp"], None, given["mask"]).measured().missing) == set(REFERENCE)


@pytest.mark.parametrize("beyond", [10.0, 2.0])
def test_tokens_beyond_bounds_are_counted_on_both_sides(beyond: float) -> None:
    given = batch(spread=1.0)
    given["logp"][1, 1], given["old"][1, 1], given["mask"][1, 1] = -0.5, -5.0, 1
    given["logp"][2, 1], given["old"][2, 1], given["mask"][2, 1] = -5.0, -0.5, 1
    r = exact_ratios(given)
    exact = int(((r > beyond) | (r < 1 / beyond)).sum())
    assert tally_ratios(**given, **EPS, beyond=beyond).measured().values["ratio.beyond_count"] == exact >= 2
    with pytest.raises(ValueError, match=r"beyond: expected 1\.0 or more, got 0\.5"):
        tally_ratios(**given, **EPS, beyond=0.5)


def test_the_largest_ratio_is_found_although_every_token_that_counts_is_below_1(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reduction, "CHUNK", 1)
    old, mask = torch.zeros(3, 3), torch.tensor([1, 1, 0]).expand(3, 3)
    logp = torch.tensor([[-4.0, -5.0, 0.0], [-1.0, -3.5, 0.0], [-2.0, -9.0, 0.0]])
    measured = tally_ratios(logp, old, mask, torch.ones(3), **EPS).measured()
    assert measured.values["ratio.max"] == pytest.approx(math.exp(-1))
    assert measured.extremes["ratio.max"].sample == 1


@pytest.mark.parametrize(("left", "right"), [(0, 4), (4, 0), (2, 3)])
@pytest.mark.parametrize("padding", [0.0, NAN, -INF])
def test_padding_on_either_side_changes_nothing_but_positions(left: int, right: int, padding: float) -> None:
    given = batch()
    clean = tally_ratios(**given, **EPS).measured()
    fills = {"logp": padding, "old": padding, "mask": 0, "ids": 0}
    wide = {
        name: torch.nn.functional.pad(value, (left, right), value=fills[name]) if name in fills else value
        for name, value in given.items()
    }
    padded = tally_ratios(**wide, **EPS).measured()
    assert padded.values == pytest.approx(clean.values, rel=1e-12)
    assert padded.histograms == clean.histograms
    for name in ("ratio.max", "ratio.min"):
        assert padded.extremes[name].position == clean.extremes[name].position + left  # type: ignore[operator]


def test_of_several_turns_only_those_of_the_policy_count() -> None:
    logp, old = torch.tensor([[-1.0, -2.0, -30.0, -1.5]]), torch.tensor([[-1.1, -1.9, -1.0, -1.5]])
    mask, ids = torch.tensor([[1, 1, 0, 1]]), torch.tensor([[5, 6, 90, 7]])
    measured = tally_ratios(logp, old, mask, torch.ones(1), ids, **EPS).measured()
    assert measured.extremes["ratio.min"].token_id == 6
    assert measured.values["ratio.min"] == pytest.approx(math.exp(-0.1), rel=1e-6)
    assert measured.values["ratio.beyond_count"] == 0
