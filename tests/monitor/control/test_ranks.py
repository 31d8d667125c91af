"""The two rank statistics against published tables and against their own definitions."""

from __future__ import annotations

import itertools
import math
import random

import pytest

from rlvitals_monitor.control.ranks import chance_lower, slope


def test_the_chance_is_counted_out_over_all_orders() -> None:
    lower, higher = [1.0, 4.0, 2.5], [3.0, 5.0, 0.5, 6.0]
    wins = sum(a > b for a in lower for b in higher)
    values = sorted(lower + higher)
    orders = list(itertools.combinations(values, len(lower)))
    as_few = sum(sum(a > b for a in c for b in values if b not in c) <= wins for c in orders)
    assert chance_lower(lower, higher) == pytest.approx(as_few / len(orders))


@pytest.mark.parametrize(("size", "critical"), [(5, 2), (8, 10), (10, 20), (12, 32)])
def test_the_critical_values_of_the_published_table_at_one_percent(size: int, critical: int) -> None:
    # Mann & Whitney's U at 1 %, one-sided: 1, 9, 19 and 31 are the largest that reject
    def with_wins(wins: int) -> float:
        higher = [float(n) for n in range(size)]
        lower = [-1.0 - n / 100 for n in range(size)]
        for n in range(size):
            take = min(wins, size)
            lower[n], wins = (take - 0.5 + n / 1000 if take else lower[n]), wins - take
        return chance_lower(lower, higher)

    assert with_wins(critical - 1) <= 0.01 < with_wins(critical)


def test_ties_are_corrected_for_and_samples_without_a_difference_say_nothing() -> None:
    assert chance_lower([1.0] * 10, [1.0] * 10) == 1.0
    assert chance_lower([], [1.0]) == 1.0
    assert chance_lower([0.0] * 10, [0.0] * 5 + [1.0] * 5) < 0.02
    assert chance_lower([0.0] * 5 + [1.0] * 5, [0.0] * 10) > 0.98


def test_the_slope_is_the_middle_of_all_pairs_and_its_interval_holds_it() -> None:
    at = [float(n) for n in range(10)]
    assert slope(at, [3.0 * t for t in at], 0.9) == (3.0, 3.0, 3.0)
    # one outlier moves it little: the slope of a straight line is 1
    low, middle, high = slope(at, [*at[:9], 100.0], 0.9)
    assert middle == 1.0
    assert low <= 1.0 <= high
    assert slope(at[:2], at[:2], 0.9) == (0.0, 0.0, 0.0)


def test_the_interval_of_the_slope_holds_the_truth_as_often_as_it_says() -> None:
    chance, at = random.Random(1), [float(n) for n in range(10)]
    held = 0
    for _ in range(400):
        low, _, high = slope(at, [0.5 * t + chance.gauss(0, 1) for t in at], 0.9)
        held += low <= 0.5 <= high
    assert 0.86 <= held / 400 <= 0.97
    assert math.isfinite(held)
