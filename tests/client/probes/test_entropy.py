"""Entropy token by token: its mean over the loss mask and its low tail."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from rlvitals.probes import reduction
from rlvitals.probes.entropy import METRICS, measure_entropy, tally_entropy
from rlvitals.probes.reduction import Pending
from rlvitals.probes.tally import Tally

NAN, INF = math.nan, math.inf


def batch(rows: int = 8, width: int = 50, seed: int = 0) -> tuple[Tensor, Tensor]:
    """From certain to undecided, half of it under the mask, NaN in the padding."""
    draw = torch.Generator().manual_seed(seed)
    entropy = torch.exp(-8 + 9 * torch.rand(rows, width, generator=draw))
    mask = (torch.rand(rows, width, generator=draw) < 0.5).long()
    entropy[0, 0], mask[0, 0] = NAN, 0
    return entropy, mask


def test_mean_and_tail_are_those_of_the_tokens_under_the_mask() -> None:
    entropy, mask = batch()
    values = tally_entropy(entropy, mask).measured().values
    exact = entropy[mask.bool()].double()
    assert set(values) == set(METRICS)
    assert math.isclose(values["policy.entropy"], exact.mean().item(), rel_tol=1e-12)
    assert values["policy.entropy_low_tail"] == (exact < 0.01).double().mean().item() > 0
    for share, name in ((0.01, "policy.entropy_p01"), (0.1, "policy.entropy_p10")):
        quantile = np.quantile(exact.numpy(), share, method="inverted_cdf")
        assert quantile * (1 - 1e-6) <= values[name] <= quantile * 1.226


def test_by_hand() -> None:
    entropy = torch.tensor([[0.0, 0.009, 0.01, 2.0, 99.0]])
    mask = torch.tensor([[1, 1, 1, 1, 0]])
    values = tally_entropy(entropy, mask).measured().values
    assert values["policy.entropy"] == pytest.approx((0.009 + 0.01 + 2) / 4)
    for precision in (torch.float32, torch.float64):
        assert tally_entropy(entropy.to(precision), mask).measured().values["policy.entropy_low_tail"] == 0.5
    assert values["policy.entropy_p01"] == 1e-6


@pytest.mark.parametrize("bad", [NAN, INF, -INF])
@pytest.mark.parametrize("trained", [True, False])
def test_a_non_finite_entropy_is_left_out_and_counted(bad: float, trained: bool) -> None:
    entropy, mask = batch()
    mask[1, 1] = 0
    clean = tally_entropy(entropy, mask)
    entropy[1, 1], mask[1, 1] = bad, int(trained)
    found = tally_entropy(entropy, mask)
    assert found.measured() == clean.measured()
    assert found.counts["nonfinite.entropy"] == int(trained)


@pytest.mark.parametrize("shape", [(3, 4), (0, 4), (3, 0)])
def test_without_a_token_under_the_mask_all_is_missing_with_a_reason(shape: tuple[int, int]) -> None:
    measured = tally_entropy(torch.ones(shape), torch.zeros(shape)).measured()
    assert not measured.values
    assert set(measured.missing) == set(METRICS)
    assert set(tally_entropy(None, torch.zeros(shape)).measured().missing) == set(METRICS)


@settings(max_examples=30)
@given(st.integers(0, 1000), st.integers(0, 8))
def test_micro_batches_add_up_to_the_batch(seed: int, cut: int) -> None:
    entropy, mask = batch(8, 5, seed)
    whole = tally_entropy(entropy, mask).measured()
    parts = [tally_entropy(entropy[a:b], mask[a:b]) for a, b in ((cut, 8), (0, cut))]
    split = sum(parts, Tally.zero()).measured()
    assert split.histograms == whole.histograms
    assert split.missing == whole.missing
    assert split.values == pytest.approx(whole.values, rel=1e-12)


def test_blocks_and_the_form_that_never_waits_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    entropy, mask = batch()
    entropy[3, 3], mask[3, 3] = INF, 1
    whole = tally_entropy(entropy, mask)
    monkeypatch.setattr(reduction, "CHUNK", 100)
    monkeypatch.setattr(reduction, "on_host", lambda tensor: False)
    again = Pending([measure_entropy(entropy, mask)]).tally()
    assert (again.counts, again.sketches) == (whole.counts, whole.sketches)
    assert again.sums == pytest.approx(whole.sums, rel=1e-12)
