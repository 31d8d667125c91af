"""What holds of every KL policy whatever it is shown."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlvitals_monitor.control.kl_decision import HOLDING_ALERTS, KlSettings, KlWhy, Observation
from rlvitals_monitor.control.kl_policies import POLICIES
from tests.monitor.control.steered import CALM, row, steer

ALL = sorted(POLICIES)
ANY = st.none() | st.floats()
POSITIVE = st.floats(min_value=0.0, exclude_min=True, allow_infinity=False)
LIKELY = st.sampled_from([0.0, 1e-9, 0.01, 0.1, 0.2, 0.3, 0.5, 2.0, 10.0])
WINDOW = 5
NOTHING: frozenset[str] = frozenset()


@st.composite
def runs(draw: st.DrawFn) -> list[Observation]:
    """Steps with gaps and a resume; long stretches of likely numbers with any others between."""
    found: list[Observation] = []
    step = 0
    for _ in range(draw(st.integers(1, 8))):
        step += draw(st.integers(-20, 20))
        number = ANY if draw(st.booleans()) else LIKELY
        seen = Observation(
            step=step,
            capped=draw(number),
            k3=draw(number),
            pull_ratio=draw(number),
            grad_max=draw(number),
            reward=draw(number),
            alerts=draw(st.sampled_from([NOTHING, NOTHING, frozenset({"nonfinite"}), frozenset({"truncation"})])),
        )
        found += row(seen, steps=draw(st.integers(1, 15)), first=step)
        step = found[-1].step
    return found


def a_setting(users: float, target: float | None) -> KlSettings:
    return KlSettings(users=users, target=target, change_steps=WINDOW, warmup_steps=4)


@pytest.mark.parametrize("name", ALL)
@given(steps=runs(), users=POSITIVE, target=st.none() | st.floats())
@settings(max_examples=60, deadline=None)
def test_a_value_is_positive_within_the_bounds_and_never_sooner_than_a_window(
    name: str, steps: list[Observation], users: float, target: float | None
) -> None:
    given_settings = a_setting(users, target)
    bounds = given_settings.bounds
    assert bounds is not None
    last: int | None = None
    back = False
    for decision in steer(name, steps, given_settings):
        assert decision.reason
        back = back or decision.why is KlWhy.WENT_BACK
        if decision.value is None:
            continue
        assert decision.value > 0.0
        assert bounds.allow(decision.value)
        assert last is None or back or decision.step - last >= WINDOW
        last, back = decision.step, False


@pytest.mark.parametrize("name", ALL)
@given(steps=runs(), alert=st.sampled_from(sorted(HOLDING_ALERTS)))
@settings(max_examples=30, deadline=None)
def test_under_an_open_alert_nothing_is_ever_set(name: str, steps: list[Observation], alert: str) -> None:
    shown = [replace(seen, alerts=seen.alerts | {alert}) for seen in steps]
    assert all(d.holds for d in steer(name, shown, a_setting(0.1, 0.2)))


@pytest.mark.parametrize("name", ALL)
@given(users=POSITIVE, coefficient=st.floats(max_value=0.0), steps=runs())
@settings(max_examples=30, deadline=None)
def test_a_coefficient_is_never_moved_across_zero_or_away_from_it(
    name: str, users: float, coefficient: float, steps: list[Observation]
) -> None:
    shown = [replace(seen, coefficient=coefficient) for seen in steps]
    assert all(d.holds for d in steer(name, shown, a_setting(users, 0.2)))


def first_value(name: str, seen: Observation) -> float:
    """What the coefficient is after a hundred equal steps with room for one change."""
    made = steer(name, row(seen, steps=100), KlSettings(users=0.1, target=0.2, change_steps=100))
    return next((d.value for d in made if d.value is not None), 0.1)


NUMBERS = st.floats(min_value=0.0, max_value=50.0)


@given(low=NUMBERS, high=NUMBERS)
@settings(max_examples=40, deadline=None)
def test_more_kl_never_means_less_penalty_where_a_target_is_tracked_and_never_more_in_the_article(
    low: float, high: float
) -> None:
    low, high = sorted((low, high))
    less, more = replace(CALM, capped=low), replace(CALM, capped=high)
    assert first_value("target-tracking", less) <= first_value("target-tracking", more)
    assert first_value("guarded", less) <= first_value("guarded", more)
    assert first_value("article", less) >= first_value("article", more)


@pytest.mark.parametrize("name", ["gradient-guard", "guarded"])
@pytest.mark.parametrize("kl", [0.01, 0.2, 1.0])
@given(low=NUMBERS, high=NUMBERS)
@settings(max_examples=20, deadline=None)
def test_a_stronger_pull_never_means_more_penalty(name: str, kl: float, low: float, high: float) -> None:
    low, high = sorted((low, high))
    calm = replace(CALM, capped=kl)
    assert first_value(name, replace(calm, pull_ratio=low)) >= first_value(name, replace(calm, pull_ratio=high))


@given(low=NUMBERS, high=NUMBERS)
@settings(max_examples=20, deadline=None)
def test_a_larger_derivative_never_lets_a_guarded_raise_through_that_a_smaller_one_stops(
    low: float, high: float
) -> None:
    low, high = sorted((low, high))
    far = replace(CALM, capped=1.0)
    small, large = replace(far, grad_max=low), replace(far, grad_max=high)
    assert first_value("guarded", small) >= first_value("guarded", large)
