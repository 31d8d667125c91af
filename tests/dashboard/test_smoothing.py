from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvitals_dashboard.smoothing import SMOOTHINGS, Smoothing, find_smoothing

MEAN, MEDIAN = Smoothing(key="m", weight=0.5), Smoothing(key="w", window=3)
values = st.lists(st.one_of(st.floats(), st.none()), max_size=40)


def test_an_average_begins_at_the_first_value_and_follows() -> None:
    assert MEAN.fold([4.0, 0.0, 0.0]) == ([4.0, 2.0, 1.0], (1.0,))


def test_a_median_lets_one_spike_pass_without_a_trace() -> None:
    assert MEDIAN.fold([1.0, 1.0, 1e9, 1.0, 1.0])[0] == [1.0] * 5


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
@pytest.mark.parametrize("gone", [math.nan, math.inf, -math.inf, None])
def test_what_is_no_number_breaks_the_line_and_what_follows_begins_anew(
    smoothing: Smoothing, gone: float | None
) -> None:
    smooth, _ = smoothing.fold([1.0, 1.0, gone, 9.0])
    assert smooth == [1.0, 1.0, None, 9.0]


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
@given(told=values, cut=st.integers(0, 40))
def test_smoothing_in_pieces_is_smoothing_at_once(
    smoothing: Smoothing, told: list[float | None], cut: int
) -> None:
    first, memory = smoothing.fold(told[:cut])
    rest, _ = smoothing.fold(told[cut:], memory)
    assert [*first, *rest] == smoothing.fold(told)[0]


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
@given(told=values)
def test_a_smooth_line_stays_between_the_least_and_the_greatest(
    smoothing: Smoothing, told: list[float | None]
) -> None:
    finite = [v for v in told if v is not None and math.isfinite(v) and abs(v) < 1e150]
    smooth = [v for v in smoothing.fold(finite)[0] if v is not None]
    slack = 1e-9 * max(map(abs, finite), default=0.0)
    assert all(min(finite) - slack <= v <= max(finite) + slack for v in smooth)


def test_an_unknown_smoothing_is_none() -> None:
    assert find_smoothing("ema-7") is None
    assert find_smoothing("") is None
