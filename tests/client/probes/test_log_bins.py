"""Log bins chosen by the bits of a number: never a smaller bin than its own, and next to none a larger one."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rlvitals.probes import reduction
from rlvitals.probes.log_bins import ENTROPY_BINS, RATIO_BINS, LogBins
from rlvitals.probes.log_bins_numpy import bin_counts
from rlvitals.probes.log_bins_torch import BinCounts

BINS = (RATIO_BINS, ENTROPY_BINS)


def counted(bins: LogBins, values: list[float]) -> list[float]:
    rows = torch.tensor([values], dtype=torch.float64)
    counts = BinCounts(bins, rows)
    counts.add(rows, slice(0, 1))
    return counts.part().tolist()  # type: ignore[no-any-return]


@settings(max_examples=30)
@given(st.sampled_from(BINS), st.floats(1e-9, 1e6, allow_subnormal=False))
def test_a_quantile_is_never_too_low_and_little_too_high(bins: LogBins, value: float) -> None:
    found = bins.sketch(counted(bins, [value])).quantile(0.5, largest=math.inf)
    assert found is not None
    step = (bins.high / bins.low) ** (1 / bins.count)
    if value < bins.low * 0.96:
        assert found == bins.low
    elif value >= bins.high:
        assert found == math.inf
    else:
        assert value <= found * (1 + 1e-6)
        assert (
            found <= max(value * step * (1 + 2**-bins.mantissa) * (1 + 1e-6), bins.low)
            or value * (1 + 2**-bins.mantissa) >= bins.high
        )


@pytest.mark.parametrize("bins", BINS)
@pytest.mark.parametrize(
    ("value", "where"), [(0.0, 0), (-0.0, 0), (1e-300, 0), (5e-7, 0), (1e30, -1), (math.inf, -1), (-math.inf, -1)]
)
def test_what_is_outside_goes_below_or_above(bins: LogBins, value: float, where: int) -> None:
    assert counted(bins, [value])[where] == 1
    assert bin_counts(bins, np.asarray([value]))[where] == 1


@pytest.mark.parametrize("bins", BINS)
@pytest.mark.parametrize("on_host", [True, False])
def test_arrays_tensors_and_the_form_that_never_waits_choose_the_same_bins(
    monkeypatch: pytest.MonkeyPatch, bins: LogBins, on_host: bool
) -> None:
    draw = np.random.default_rng(0)
    values = np.exp(draw.uniform(-15, 8, 5000)) * draw.choice([-1, 1], 5000)
    monkeypatch.setattr(reduction, "on_host", lambda tensor: on_host)
    found = counted(bins, values.tolist())
    assert found == bin_counts(bins, values).tolist()
    assert sum(found) == 5000
