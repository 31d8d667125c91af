from __future__ import annotations

import json
import math
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvitals.contract import codec
from rlvitals_monitor.rules.value import Number, Unknown
from rlvitals_monitor.rules.window import STATISTICS, Window
from tests.monitor.rules.judging import START, numbers

INF, NAN = math.inf, math.nan


def shown(found: list[Number]) -> list[float | None]:
    return [None if isinstance(x, Unknown) else x for x in found]


def test_a_window_says_nothing_before_it_has_seen_n_values() -> None:
    found = numbers("mean(kl.k3, 3)", [1.0, 2.0, 3.0, 4.0])
    assert shown(found) == [None, None, 2.0, 3.0]
    assert isinstance(found[0], Unknown)
    assert found[0].reason == "kl.k3 has 1 of the 3 observed values that the rule looks at"


@pytest.mark.parametrize(
    ("name", "expected"),
    [("mean", 3.0), ("median", 2.0), ("lowest", 1.0), ("highest", 7.0), ("mad", 1.0), ("slope", 1.3)],
)
def test_each_statistic_of_a_known_series(name: str, expected: float) -> None:
    assert shown(numbers(f"{name}(kl.k3, 5)", [2.0, 1.0, 1.0, 4.0, 7.0]))[-1] == pytest.approx(expected)


def test_a_missing_step_and_a_nan_are_no_observations_and_are_unknown_themselves() -> None:
    assert shown(numbers("mean(kl.k3, 2)", [1.0, None, 3.0, NAN, 5.0])) == [None, None, 2.0, None, 4.0]


def test_infinities_are_numbers_in_a_window() -> None:
    assert shown(numbers("highest(kl.k3, 2)", [1.0, INF, 2.0, 3.0])) == [None, INF, INF, 3.0]
    assert shown(numbers("lowest(kl.k3, 2)", [1.0, -INF, 2.0, 3.0])) == [None, -INF, -INF, 2.0]
    assert shown(numbers("median(kl.k3, 3)", [1.0, INF, 2.0])) == [None, None, 2.0]


def test_the_slope_is_per_step_also_where_steps_are_left_out() -> None:
    assert shown(numbers("slope(kl.k3, 3)", [1.0, None, 3.0, None, 5.0]))[-1] == pytest.approx(1.0)


def test_the_mad_and_slope_over_infinities_give_no_false_number() -> None:
    for name in ("mad", "slope"):
        (last,) = numbers(f"{name}(kl.k3, 3)", [1.0, INF, INF])[-1:]
        assert isinstance(last, Unknown) or math.isnan(last)


@given(st.lists(st.floats(allow_nan=False), min_size=1, max_size=8), st.sampled_from(sorted(STATISTICS)))
def test_no_values_make_a_statistic_raise(values: list[float], name: str) -> None:
    assert isinstance(STATISTICS[name](values, list(range(len(values)))), float)


def test_steps_must_move_on() -> None:
    window = Window({})
    window.push(7, START, {})
    with pytest.raises(ValueError, match="expected a step after 7, got 7"):
        window.push(7, START, {})


def test_a_window_survives_its_json_with_infinities() -> None:
    window = Window({"kl.k3": 3})
    for step, value in enumerate([1.0, INF, -INF, NAN, 2.0]):
        window.push(step, START + timedelta(seconds=step), {"kl.k3": value, "user.own": 1.0})
    kept = json.loads(codec.dumps(window.dump()))
    assert kept == {
        "step": 4,
        "observed": 5,
        "seen": ["kl.k3", "user.own"],
        "rings": {"kl.k3": [[1, 2, 4], ["Infinity", "-Infinity", 2.0]]},
    }
