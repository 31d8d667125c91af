from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvitals_monitor.rules.baselines import LEAST_QUIET, MEMORIES
from rlvitals_monitor.rules.value import Unknown
from tests.monitor.rules.judging import a_rule, judge, numbers
from tests.monitor.rules.test_window import shown

INF, NAN = math.inf, math.nan


def test_a_baseline_is_the_median_of_the_steps_before_this_one() -> None:
    found = shown(numbers("baseline(kl.k3, 3)", [1.0, 3.0, 2.0, 100.0, 100.0]))
    assert found == [None, None, None, 2.0, 3.0]


def test_a_long_baseline_needs_twenty_quiet_steps() -> None:
    found = numbers("baseline(kl.k3)", [1.0] * (LEAST_QUIET + 1))
    assert [isinstance(x, Unknown) for x in found] == [True] * LEAST_QUIET + [False]
    assert isinstance(found[3], Unknown)
    assert found[3].reason == "baseline: 3 of 20 quiet steps seen"


def test_a_first_baseline_never_changes_again() -> None:
    found = shown(numbers("first_baseline(kl.k3, 3)", [5.0, 1.0, 3.0, 100.0, 200.0, 300.0]))
    assert found == [None, None, None, 3.0, 3.0, 3.0]


def test_ema_lag_peak_and_trough() -> None:
    series = [4.0, 0.0, 8.0, 2.0]
    assert shown(numbers("ema(kl.k3, 3)", series)) == [4.0, 2.0, 5.0, 3.5]
    assert shown(numbers("lag(kl.k3, 2)", series)) == [None, None, 4.0, 0.0]
    assert shown(numbers("peak(kl.k3)", series)) == [4.0, 4.0, 8.0, 8.0]
    assert shown(numbers("trough(kl.k3)", series)) == [4.0, 0.0, 0.0, 0.0]
    assert shown(numbers("lag(ema(kl.k3, 3), 1)", series)) == [None, 4.0, 2.0, 5.0]


def test_robust_z_has_a_floor_so_that_a_constant_signal_is_no_alarm() -> None:
    assert shown(numbers("robust_z(kl.k3, 0.5)", [1.0] * 20 + [2.0]))[-1] == pytest.approx(2.0)
    (last,) = numbers("robust_z(kl.k3, 0)", [1.0] * 20 + [2.0])[-1:]
    assert isinstance(last, Unknown)


@pytest.mark.parametrize(
    "name", ["ema(kl.k3, 3)", "peak(kl.k3)", "trough(kl.k3)", "lag(kl.k3, 1)", "baseline(kl.k3, 2)"]
)
def test_non_finite_and_missing_values_are_never_learned(name: str) -> None:
    plain = shown(numbers(name, [1.0, 2.0, 3.0]))[-1]
    for strange in (NAN, INF, -INF, None):
        assert shown(numbers(name, [1.0, strange, 2.0, strange, 3.0]))[-1] == plain, strange


def test_an_infinite_value_is_read_as_the_number_that_it_is() -> None:
    assert shown(numbers("ema(kl.k3, 3)", [1.0, INF])) == [1.0, INF]
    assert shown(numbers("peak(kl.k3)", [1.0, INF, 2.0])) == [1.0, INF, 2.0]


def test_a_baseline_does_not_learn_the_steps_on_which_the_rule_holds() -> None:
    rule = a_rule("kl.k3 > 10 * baseline(kl.k3, 3)")
    series = [1.0] * 3 + [50.0] * 40
    found = judge(rule, [{"kl.k3": value} for value in series])
    assert [e.held for e in found[3:]] == [True] * 40


def test_a_peak_begins_after_the_warm_up() -> None:
    rule = a_rule("kl.k3 >= peak(kl.k3)", warmup="2")
    found = judge(rule, [{"kl.k3": value} for value in [9.0, 9.0, 1.0, 2.0, 1.5]])
    assert [e.held for e in found] == [None, None, True, True, False]


@given(
    st.sampled_from(sorted(MEMORIES)),
    st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=60),
    st.floats(allow_nan=False),
    st.integers(1, 50),
)
def test_slots_stay_finite_and_bounded_whatever_comes(name: str, series: list[float], x: float, n: int) -> None:
    memory = MEMORIES[name]
    slot: list[float] = []
    for value in series:
        memory.learn(slot, value, n, True, True)
        assert len(slot) <= n + 1
        assert all(map(math.isfinite, slot))
    assert isinstance(memory.read(slot, x, n, 1.0), (float, Unknown))
