"""Where two curves part."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import numpy as np
import pytest

from rlvitals.contract.comparison import Likeness
from rlvitals_monitor.comparison.parting import WINDOW, Course, Verdict, judge


def course(values: Sequence[float], steps: Sequence[int] | None = None, every: float = 1.0) -> Course:
    step = np.array(range(len(values)) if steps is None else steps, np.int64)
    return Course(at=np.asarray(step * every, np.float64), step=step, value=np.array(values, np.float64))


def noisy(seed: int, count: int = 300, level: float = 1.0, shift: float = 0.0, since: int = 10**9) -> list[float]:
    """Around ``level``, moved by ``shift`` from a step on."""
    draw = random.Random(seed)
    return [level + draw.gauss(0, 0.1) + (shift if step >= since else 0.0) for step in range(count)]


def seen(one: Sequence[float], other: Sequence[float]) -> Verdict:
    return judge(course(one), course(other), by_step=True)


def test_equal_curves_are_the_same_also_in_what_is_no_number() -> None:
    values = [1.0, math.nan, math.inf, -math.inf, *noisy(1)]
    assert seen(values, list(values)).likeness is Likeness.SAME


@pytest.mark.parametrize("seed", range(40))
def test_the_noise_of_two_seeds_parts_nothing(seed: int) -> None:
    assert seen(noisy(seed), noisy(1000 + seed)).likeness is Likeness.TOGETHER


@pytest.mark.parametrize("seed", range(40))
def test_a_shift_of_five_noises_is_found_within_its_first_steps(seed: int) -> None:
    verdict = seen(noisy(seed), noisy(1000 + seed, shift=0.5, since=200))
    assert verdict.likeness is Likeness.APART
    assert verdict.here is not None
    assert 200 - WINDOW // 2 <= verdict.here <= 200 + WINDOW


def test_a_trend_that_both_share_is_no_noise_and_hides_nothing() -> None:
    climb = [0.5 * step for step in range(300)]
    one = [a + b for a, b in zip(climb, noisy(1), strict=True)]
    other = [a + b for a, b in zip(climb, noisy(2, shift=0.6, since=150), strict=True)]
    assert seen(one, [a + b for a, b in zip(climb, noisy(3), strict=True)]).likeness is Likeness.TOGETHER
    assert seen(one, other).likeness is Likeness.APART


def test_a_setting_that_is_changed_parts_at_the_very_step() -> None:
    verdict = seen([1e-6] * 100, [1e-6] * 40 + [5e-7] * 60)
    assert (verdict.likeness, verdict.here) == (Likeness.APART, 40)
    assert seen([1e-6] * 100, [1e-6 * (1 + 1e-12)] * 100).likeness is Likeness.TOGETHER


def test_curves_that_meet_again_say_so() -> None:
    away = [v + (1.0 if 100 <= step < 160 else 0.0) for step, v in enumerate(noisy(2))]
    verdict = seen(noisy(1), away)
    assert verdict.likeness is Likeness.REJOINED
    assert verdict.reason.endswith("together again at the end")


@pytest.mark.parametrize(
    ("value", "word"), [(math.nan, "NaN"), (math.inf, "+Inf"), (-math.inf, "−Inf")], ids=["nan", "inf", "-inf"]
)
def test_what_is_no_number_parts_from_a_number_at_once(value: float, word: str) -> None:
    other = noisy(1)
    other[77] = value
    verdict = seen(noisy(1), other)
    assert (verdict.likeness, verdict.here) == (Likeness.REJOINED, 77)
    assert verdict.reason.startswith(f"{word} where the first run has a number")
    assert seen(other, noisy(1)).reason.startswith(f"a number where the first run has {word}")


def test_the_two_infinities_and_nan_are_unlike_each_other() -> None:
    for one, other in ((math.inf, -math.inf), (math.nan, math.inf), (-math.inf, math.nan)):
        assert seen([one] * 20, [other] * 20).here == 0


def test_a_missing_step_is_passed_over_and_a_few_points_judge_nothing() -> None:
    other = course(noisy(2)[::3], list(range(0, 300, 3)))
    verdict = judge(course(noisy(1)), other, by_step=True)
    assert (verdict.likeness, verdict.points) == (Likeness.TOGETHER, 100)
    few = judge(course([1.0] * 5), course([1.0, 1.0, 1.0, 1.0, 1.1]), by_step=True)
    assert (few.likeness, few.reason) == (Likeness.NOT_JUDGED, f"5 of {WINDOW} common points")
    nothing = judge(course([1.0], [1]), course([1.0], [2]), by_step=True)
    assert nothing.reason == "the two have no point in common"


def test_huge_values_overflow_nothing() -> None:
    verdict = seen([1.7e308] * 30, [-1.7e308] * 30)
    assert (verdict.likeness, verdict.here) == (Likeness.APART, 0)


def test_on_another_axis_the_other_curve_is_read_between_its_points() -> None:
    """One takes twice the tokens a step: at the same tokens it is at half the step."""
    curve = [float(step) for step in range(200)]
    fast = Course(
        at=np.arange(200, dtype=np.float64) * 2, step=np.arange(200), value=np.array([2.0 * v for v in curve])
    )
    verdict = judge(course(curve), fast, by_step=False)
    assert verdict.likeness is not Likeness.APART
    assert verdict.points == 200
    assert judge(course(curve), fast, by_step=True).likeness is Likeness.APART
