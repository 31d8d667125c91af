"""How far a command may go."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvitals.contract.command import CommandKind
from rlvitals_monitor.control.bounds import Limits, bounds_for, users_value

values = st.floats(min_value=0, exclude_min=True, allow_nan=False, allow_infinity=False)


@given(value=values, automatic=st.booleans())
def test_bounds_are_finite_positive_and_hold_the_users_own_value(value: float, automatic: bool) -> None:
    bounds = bounds_for(CommandKind.SET_KL_COEF, {"kl_coef": value}, Limits(), automatic=automatic)
    assert bounds is not None
    assert 0.0 < bounds.low <= value <= bounds.high < math.inf


@given(value=st.floats(min_value=1e-300, max_value=1e300))
def test_automatic_bounds_are_a_factor_of_two_and_lie_within_the_approved_ones(value: float) -> None:
    config = {"kl_coef": value}
    narrow = bounds_for(CommandKind.SET_KL_COEF, config, Limits(), automatic=True)
    wide = bounds_for(CommandKind.SET_KL_COEF, config, Limits(), automatic=False)
    assert narrow is not None
    assert wide is not None
    assert (narrow.low, narrow.high) == (value / 2.0, value * 2.0)
    assert wide.low <= narrow.low
    assert narrow.high <= wide.high


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"kl_coef": None},
        {"kl_coef": 0.0},
        {"kl_coef": -0.1},
        {"kl_coef": math.nan},
        {"kl_coef": math.inf},
        {"kl_coef": -math.inf},
        {"kl_coef": "NaN"},
        {"kl_coef": "0.1"},
        {"kl_coef": True},
        {"kl_coef": 10**400},
    ],
    ids=str,
)
def test_without_a_finite_positive_value_of_the_user_there_are_no_bounds(config: dict[str, object]) -> None:
    assert users_value(CommandKind.SET_KL_COEF, config) is None
    assert bounds_for(CommandKind.SET_KL_COEF, config, Limits(), automatic=False) is None


def test_a_learning_rate_factor_is_bounded_around_one_without_any_configuration() -> None:
    bounds = bounds_for(CommandKind.SCALE_LR, {}, Limits(), automatic=True)
    assert bounds is not None
    assert (bounds.low, bounds.high) == (0.5, 2.0)


def test_kinds_without_an_argument_have_no_bounds() -> None:
    for kind in (CommandKind.RESUME, CommandKind.STOP, CommandKind.CHECKPOINT):
        assert bounds_for(kind, {"kl_coef": 0.1}, Limits(), automatic=True) is None


def test_a_pause_is_bounded_by_the_longest_one() -> None:
    bounds = bounds_for(CommandKind.PAUSE, {}, Limits(longest_pause_s=60.0), automatic=True)
    assert bounds is not None
    assert bounds.allow(60.0)
    assert not bounds.allow(60.5)
    assert not bounds.allow(0.0)
    assert not bounds.allow(math.nan)


@pytest.mark.parametrize("factor", [0.5, math.nan, math.inf, -2.0])
def test_a_factor_that_is_none_is_refused_by_name(factor: float) -> None:
    with pytest.raises(ValueError, match="approved_kl_up: expected a finite factor"):
        Limits(approved_kl_up=factor)


def test_an_endless_pause_is_refused() -> None:
    with pytest.raises(ValueError, match="longest_pause_s"):
        Limits(longest_pause_s=math.inf)


@pytest.mark.parametrize("base", [0.0003, 0.0007, 0.1, 0.07, 1e-9, 3.3])
def test_ten_times_the_users_value_and_a_thousandth_are_as_a_person_reckons_them(base: float) -> None:
    bounds = bounds_for(CommandKind.SET_KL_COEF, {"kl_coef": base}, Limits(), automatic=False)
    assert bounds is not None
    assert bounds.allow(float(f"{base * 10:.12g}"))
    assert bounds.allow(float(f"{base / 1000:.12g}"))
    assert not bounds.allow(base * 10 * (1 + 1e-12))
