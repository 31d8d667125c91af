"""Ratios that overflow though both log-probs are finite."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rlvitals.probes import reduction
from rlvitals.probes.nonfinite import tally_nonfinite_ratios
from rlvitals.probes.tally import Tally

NAN, INF = math.nan, math.inf
MASK = torch.tensor([[1, 1, 0], [1, 1, 1]])
IDS = torch.arange(6).reshape(2, 3)


def counted(logp: torch.Tensor, old: torch.Tensor) -> float:
    return tally_nonfinite_ratios(logp, old, MASK).measured().values["numerics.nonfinite_ratios"]


@pytest.mark.parametrize(
    ("dtype", "finite", "too_much"),
    [
        (torch.float16, 11.0, 11.5),
        (torch.bfloat16, 88.5, 89.5),
        (torch.float32, 88.7, 88.8),
        (torch.float64, 709, 710),
    ],
    ids=str,
)
def test_a_ratio_overflows_where_exp_does_in_the_trainers_own_float_type(
    dtype: torch.dtype, finite: float, too_much: float
) -> None:
    old = torch.full((2, 3), -1000.0, dtype=torch.float64)
    for gap, count in ((finite, 0), (too_much, 1)):
        logp = old.clone()
        logp[1, 2] += gap
        ratio = torch.tensor(gap, dtype=dtype).exp()
        assert counted(torch.zeros_like(old).to(dtype) + (logp - old).to(dtype), torch.zeros(2, 3)) == count
        assert bool(ratio.isinf()) == bool(count)


def test_the_token_is_named_and_padding_is_left_alone() -> None:
    logp, old = torch.zeros(2, 3), torch.zeros(2, 3)
    logp[0, 2], old[1, 1] = 100.0, -100.0
    tally = tally_nonfinite_ratios(logp, old, MASK, ids=IDS, sample_offset=4)
    measured = tally.measured()
    assert measured.values == {"numerics.nonfinite_ratios": 1.0}
    first = measured.extremes["numerics.nonfinite_ratios"]
    assert (first.sample, first.position, first.token_id, first.value) == (5, 1, 4, INF)
    assert (tally.counts["nonfinite.ratios.positive"], tally.counts["nonfinite.ratios.nan"]) == (1, 0)


@pytest.mark.parametrize(
    ("logp", "old", "count"), [(-INF, 0.0, 0), (0.0, -INF, 1), (-INF, -INF, 1), (NAN, 0.0, 1), (0.0, INF, 0)]
)
def test_each_kind_of_non_finite_log_prob_gives_what_exp_gives(logp: float, old: float, count: int) -> None:
    new, before = torch.zeros(2, 3), torch.zeros(2, 3)
    new[0, 0], before[0, 0] = logp, old
    assert counted(new, before) == count == int((~(new - before).exp().isfinite()).sum())


def test_an_empty_batch_and_an_empty_mask_have_none() -> None:
    empty = torch.zeros(0, 3)
    assert tally_nonfinite_ratios(empty, empty, empty).measured().values["numerics.nonfinite_ratios"] == 0
    nan = torch.full((2, 3), NAN)
    assert tally_nonfinite_ratios(nan, nan, torch.zeros(2, 3)).measured().values["numerics.nonfinite_ratios"] == 0


def test_the_form_that_never_waits_counts_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    logp, old = torch.zeros(2, 3), torch.zeros(2, 3)
    logp[0, 1], old[1, 0] = 99.0, NAN
    expected = tally_nonfinite_ratios(logp, old, MASK, ids=IDS)
    monkeypatch.setattr(reduction, "on_host", lambda tensor: False)
    assert tally_nonfinite_ratios(logp, old, MASK, ids=IDS) == expected


def told(tally: Tally) -> str:
    """Counts and witnesses in one order, where NaN is NaN."""
    return repr((sorted(tally.counts.items()), sorted(tally.firsts.items(), key=lambda first: first[0])))


VALUES = st.sampled_from([0.0, -1.0, 60.0, -60.0, NAN, INF, -INF])


@settings(max_examples=30)
@given(st.lists(st.tuples(VALUES, VALUES, st.booleans()), min_size=6, max_size=6), st.integers(0, 2))
def test_arrays_tensors_and_any_split_count_the_same(cells: list[tuple[float, float, bool]], cut: int) -> None:
    logp, old, mask = (torch.tensor(column).reshape(2, 3) for column in zip(*cells, strict=True))
    whole = tally_nonfinite_ratios(logp, old, mask, ids=IDS)
    assert told(tally_nonfinite_ratios(logp.numpy(), old.numpy(), mask.numpy(), ids=IDS.numpy())) == told(whole)
    parts = tally_nonfinite_ratios(logp[cut:], old[cut:], mask[cut:], ids=IDS[cut:], sample_offset=cut)
    parts += tally_nonfinite_ratios(logp[:cut], old[:cut], mask[:cut], ids=IDS[:cut])
    assert told(parts) == told(whole)
