"""Fixed log bins and their quantiles."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvitals.probes.sketch import Moments, Sketch

BINS = {"low": 1e-4, "high": 1e2, "bins": 96}


@given(st.lists(st.floats(1e-4, 99.0), min_size=1, max_size=300), st.sampled_from([0.5, 0.9, 0.999, 1.0]))
def test_a_quantile_is_never_too_low_and_at_most_one_bin_too_high(values: list[float], share: float) -> None:
    found = Sketch.of(values, **BINS).quantile(share, largest=max(values))  # type: ignore[arg-type]
    exact = sorted(values)[math.ceil(share * len(values)) - 1]
    assert found is not None
    assert exact * (1 - 1e-12) <= found <= exact * 10 ** (6 / 96) * (1 + 1e-12)


def test_quantiles_outside_the_bins_are_bounded_by_what_was_seen() -> None:
    assert Sketch.of([0.0, 0.0], **BINS).quantile(0.999, largest=0.0) == 0.0  # type: ignore[arg-type]
    assert Sketch.of([1e5] * 3, **BINS).quantile(0.999, largest=1e5) == 1e5  # type: ignore[arg-type]
    assert Sketch.of([], **BINS).quantile(0.999, largest=0.0) is None  # type: ignore[arg-type]


def test_sketches_with_other_bins_are_not_added() -> None:
    with pytest.raises(ValueError, match="same bins"):
        Sketch.of([1.0], low=1, high=8, bins=3) + Sketch.of([1.0], low=1, high=8, bins=4)


@pytest.mark.parametrize(
    ("values", "edges", "counts"),
    [
        ([0, 1, 1, 5], (0.0, 1.0, 2.0, 4.0, 8.0), (1, 2, 0, 1)),
        ([2, 3], (2.0, 4.0), (2,)),
        ([5, 900], (4.0, 8.0, math.inf), (1, 1)),
        ([2, 900], (2.0, 4.0, 8.0, math.inf), (1, 0, 1)),
        ([900], (8.0, math.inf), (1,)),
        ([0], (0.0, 1.0), (1,)),
    ],
)
def test_a_histogram_shows_the_bins_that_hold_something(
    values: list[int], edges: tuple[float, ...], counts: tuple[int, ...]
) -> None:
    shown = Sketch.of(values, low=1.0, high=8.0, bins=3).histogram()
    assert shown == (edges, counts)


def test_the_standard_deviation_divides_by_n_minus_1_and_needs_two_values() -> None:
    assert Moments.of(np.array([1.0, 3.0])).std == math.sqrt(2)
    assert Moments.of(np.array([1.0])).std is None
    assert Moments().std is None
