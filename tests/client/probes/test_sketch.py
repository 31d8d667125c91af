"""Fixed log bins and their quantiles."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvitals.probes.sketch import Moments, Sketch, signed_histogram

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


def both(values: list[float]) -> tuple[Sketch, Sketch]:
    down, up = [-v for v in values if v < 0], [v for v in values if v >= 0]
    return tuple(Sketch.of(side, low=0.5, high=8.0, bins=4) for side in (down, up))  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([0.0, 1.0], ((-0.5, 0.5, 1.0, 2.0), (1, 0, 1))),
        ([-1.0, -0.25, 0.25], ((-2.0, -1.0, -0.5, 0.5), (1, 0, 2))),
        ([3.0], ((2.0, 4.0), (1,))),
        (
            [-99.0, 99.0],
            ((-math.inf, -8.0, -4.0, -2.0, -1.0, -0.5, 0.5, 1.0, 2.0, 4.0, 8.0, math.inf), (1, *[0] * 9, 1)),
        ),
        ([], ((-0.5, 0.5), (0,))),
    ],
)
def test_a_histogram_of_both_signs_mirrors_the_bins_around_zero(
    values: list[float], shown: tuple[tuple[float, ...], tuple[int, ...]]
) -> None:
    assert signed_histogram(*both(values)) == shown


@given(st.lists(st.floats(-1e6, 1e6), max_size=40))
def test_a_histogram_of_both_signs_loses_no_value(values: list[float]) -> None:
    edges, counts = signed_histogram(*both(values))
    assert sum(counts) == len(values)
    assert len(edges) == len(counts) + 1
    assert list(edges) == sorted(edges)
