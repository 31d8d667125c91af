from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rlvitals_dashboard.symlog import SymLog

finite = st.floats(-1e300, 1e300, allow_nan=False)


@given(st.lists(finite, min_size=1, max_size=30))
def test_larger_values_lie_higher_and_none_is_lost(values: list[float]) -> None:
    scale = SymLog.of(values)
    places = [scale.place(value) for value in sorted(values)]
    assert all(math.isfinite(place) for place in places)
    assert all(a <= b for a, b in pairwise(places))


@given(finite, st.integers(-12, 12))
@example(1e300, -12)
@example(-1e300, -12)
def test_a_place_leads_back_to_its_value(value: float, power: int) -> None:
    scale = SymLog(linear=10.0**power)
    assert scale.value(scale.place(value)) == pytest.approx(value, rel=1e-9, abs=1e-12 * scale.linear)


def test_zero_lies_at_zero_and_a_negative_number_mirrors_its_positive_one() -> None:
    scale = SymLog.of([0.0, 1.0, -1.0, 1e6])
    assert scale.place(0.0) == 0.0
    assert scale.place(-1e6) == -scale.place(1e6)


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        ([0.0, 1.0, 10.0, 100.0], ["0", "1", "10", "100"]),
        ([-100.0, -1.0, 0.0, 1.0, 100.0], ["−100", "−1", "0", "1", "100"]),
        ([-1e-3, -1.0], ["−1", "−0.1", "−0.01", "−0.001"]),
        ([0.0, 0.0], ["0"]),
    ],
)
def test_ticks_say_the_true_values(values: list[float], labels: list[str]) -> None:
    _, said = SymLog.of(values).ticks(min(values), max(values))
    assert said == labels


@given(st.lists(finite, min_size=1, max_size=30))
def test_a_tick_stands_where_its_value_is_drawn_and_they_are_few(values: list[float]) -> None:
    scale = SymLog.of(values)
    places, labels = scale.ticks(min(values), max(values))
    assert len(places) == len(labels) <= 8
    assert places == sorted(places)


def test_values_far_below_the_largest_do_not_stretch_the_axis_without_end() -> None:
    scale = SymLog.of([5e-324, 1.0])
    assert 0 < scale.place(1.0) < 20
