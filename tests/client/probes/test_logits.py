"""The logits at a few positions."""

from __future__ import annotations

import gc
import math
import weakref

import numpy as np
import pytest
import torch

from rlvitals.probes import logits as logits_probe
from rlvitals.probes.logits import measure_logits, tally_logits
from tests.client.probes.test_transfers import waits

NAN, INF = math.nan, math.inf


def grid(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


def test_spread_and_extremes_are_those_within_each_position() -> None:
    logits = grid(2, 3, 7) + 100 * torch.arange(6).reshape(2, 3, 1)
    measured = tally_logits(logits, sample_offset=4).measured()
    expected = logits.double().var(dim=2, correction=0).mean().sqrt().item()
    assert measured.values["numerics.logit_std"] == pytest.approx(expected)
    greatest, least = measured.extremes["numerics.logit_max"], measured.extremes["numerics.logit_min"]
    assert (greatest.sample, greatest.position, greatest.value) == (5, 2, logits[1, 2].max().item())
    assert greatest.token_id == int(logits[1, 2].argmax())
    assert (least.sample, least.position, least.token_id) == (4, 0, int(logits[0, 0].argmin()))


def test_only_positions_under_the_mask_are_looked_at() -> None:
    logits, mask = grid(3, 4, 5), torch.zeros(3, 4)
    mask[1, 2] = mask[2, 0] = 1
    logits[0, 0], logits[1, 2, 3] = NAN, 50.0
    measured = tally_logits(logits, mask).measured()
    assert measured.values["numerics.nonfinite_logits"] == 0
    assert measured.extremes["numerics.logit_max"].position == 2


@pytest.mark.parametrize("tokens", [1, 3, 5, 64, 500])
def test_as_many_positions_as_asked_for_are_spread_evenly_over_the_tokens(tokens: int) -> None:
    mask = torch.zeros(8, 100)
    mask.view(-1)[torch.randperm(800, generator=torch.Generator().manual_seed(1))[:tokens]] = 1
    part = measure_logits(grid(8, 100, 3), mask, positions=5, seed=7).parts[0].reshape(5, 12)
    where = part[part[:, 1] > 0, 0].long()
    assert len(set(where.tolist())) == len(where) == min(5, tokens)
    assert (mask.view(-1)[where] == 1).all()
    other = measure_logits(grid(8, 100, 3), mask, positions=5, seed=8).parts[0].reshape(5, 12)
    assert (tokens <= 5) or (other[:, 0].long().tolist() != where.tolist())


@pytest.mark.parametrize(("bad", "kind"), [(NAN, "nan"), (INF, "positive"), (-INF, "negative")])
def test_each_kind_of_non_finite_logit_is_counted_named_and_left_out(bad: float, kind: str) -> None:
    logits = grid(2, 3, 5)
    logits[1, 1, 3] = bad
    tally = tally_logits(logits)
    assert tally.counts[f"nonfinite.logits.{kind}"] == tally.counts["nonfinite.logits"] == 1
    measured = tally.measured()
    first = measured.extremes["numerics.nonfinite_logits"]
    assert (first.sample, first.position, first.token_id, repr(first.value)) == (1, 1, 3, repr(bad))
    assert all(math.isfinite(value) for value in measured.values.values())


@pytest.mark.parametrize(
    "logits",
    [torch.zeros(0, 3, 5), torch.zeros(2, 0, 5), torch.full((1, 2, 3), NAN)],
    ids=["no rows", "no tokens", "all NaN"],
)
def test_without_a_finite_logit_the_spread_is_missing(logits: torch.Tensor) -> None:
    measured = tally_logits(logits).measured()
    assert set(measured.missing) == {"numerics.logit_std", "numerics.logit_min", "numerics.logit_max"}
    assert measured.values == {"numerics.nonfinite_logits": float(logits.numel())}


def test_an_empty_mask_looks_at_nothing() -> None:
    assert tally_logits(grid(2, 3, 5), torch.zeros(2, 3)).counts["logit.positions"] == 0


def test_micro_batches_add_up() -> None:
    logits = grid(4, 3, 5)
    whole = tally_logits(logits)
    parts = tally_logits(logits[2:], sample_offset=2) + tally_logits(logits[:2])
    assert parts.minima == whole.minima
    assert parts.maxima == whole.maxima
    assert parts.counts == whole.counts
    assert parts.measured().values == pytest.approx(whole.measured().values)


def test_arrays_half_precision_and_blocks_of_one_row_count_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    logits = grid(2, 9, 5).to(torch.bfloat16)
    expected = tally_logits(logits.double())
    assert tally_logits(logits) == tally_logits(logits.double().numpy(), np.ones((2, 9))) == expected
    monkeypatch.setattr(logits_probe, "_BLOCK", 5)
    assert tally_logits(logits) == expected


def test_a_slice_of_the_logits_is_not_copied_whole() -> None:
    logits = grid(2, 5, 4)[:, 1:-1]
    assert not logits.is_contiguous()
    assert tally_logits(logits) == tally_logits(logits.contiguous())


def test_the_global_dice_are_left_alone() -> None:
    before = torch.get_rng_state().clone()
    tally_logits(grid(4, 50, 3), torch.ones(4, 50), seed=3)
    assert torch.equal(torch.get_rng_state(), before)


def test_arguments_that_do_not_fit_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"logits: expected \(B, T, V\)"):
        measure_logits(torch.zeros(2, 3))
    with pytest.raises(ValueError, match=r"mask: expected \(2, 3\)"):
        measure_logits(torch.zeros(2, 3, 4), torch.ones(3, 2))
    with pytest.raises(TypeError, match="logits: expected floating-point"):
        measure_logits(torch.zeros(2, 3, 4, dtype=torch.long))


def test_a_device_is_asked_for_nothing() -> None:
    logits, mask = torch.empty(4, 50, 3, device="meta"), torch.empty(4, 50, device="meta")
    with waits() as waited:
        measure_logits(logits, mask)
        measure_logits(logits)
    assert waited == []


def test_no_graph_and_no_logits_are_kept_and_inference_mode_changes_nothing() -> None:
    leaf = grid(2, 3, 5).requires_grad_()
    logits = leaf * 1
    reduction = measure_logits(logits)
    kept, expected = weakref.ref(logits), tally_logits(grid(2, 3, 5))
    del logits
    gc.collect()
    assert kept() is None
    assert not any(part.requires_grad for part in reduction.parts)
    assert reduction.tally() == expected
    with torch.inference_mode():
        assert tally_logits(grid(2, 3, 5) * 1) == expected
