"""Each KL policy against values worked by hand, and each gate by the name of its hold."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from rlvitals_monitor.control.bounds import Limits
from rlvitals_monitor.control.kl_decision import (
    HOLDING_ALERTS,
    START_ALERTS,
    KlDecision,
    KlSettings,
    KlWhy,
    Observation,
    OpenAlert,
    holding,
)
from rlvitals_monitor.control.kl_policies import POLICIES
from rlvitals_monitor.rules.loader import load_rules
from tests.monitor.control.steered import CALM, USERS, changes, row, steer

FAR = replace(CALM, capped=0.5, k3=0.5)
NEAR = replace(CALM, capped=0.05, k3=0.05)
PULLED = replace(CALM, pull_ratio=2.0)
ALL = sorted(POLICIES)


def last(made: list[KlDecision]) -> KlWhy:
    return made[-1].why


def test_target_tracking_compounds_a_tenth_of_the_error_at_each_step_of_the_window() -> None:
    # an error of 2 % for 50 steps: 1.002 ** 50 = 1.10506
    made = steer("target-tracking", row(replace(CALM, capped=0.204), steps=50))
    assert changes(made) == [(49, "raise", 0.110506)]


def test_target_tracking_clips_the_error_at_a_fifth_and_one_change_at_a_quarter() -> None:
    # KL at 2.5 times its target asks for 1.02 ** 50 = 2.69, one change may be 1.25
    assert changes(steer("target-tracking", row(FAR, steps=50))) == [(49, "raise", 0.125)]
    assert changes(steer("target-tracking", row(NEAR, steps=50))) == [(49, "lower", 0.08)]


def test_target_tracking_counts_the_steps_between_lines_of_a_sparse_log() -> None:
    # 50 observations, two steps apart: the first counts once, the others twice, and 1.002 ** 99 = 1.2187
    sparse = [replace(CALM, capped=0.204, step=2 * n) for n in range(50)]
    assert changes(steer("target-tracking", sparse)) == [(98, "raise", 0.121872)]


def test_target_tracking_takes_the_raw_mean_where_nothing_is_capped() -> None:
    raw = replace(FAR, capped=None)
    assert changes(steer("target-tracking", row(raw, steps=50))) == [(49, "raise", 0.125)]


def test_the_gradient_guard_lowers_by_a_fifth_on_two_of_three_steps_above_one() -> None:
    assert changes(steer("gradient-guard", [*row(steps=58), *row(PULLED, steps=2, first=58)])) == [
        (59, "lower", 0.08)
    ]


@pytest.mark.parametrize("pulls", [[2.0, 0.3, 0.3, 2.0], [1.0, 1.0, 1.0]])
def test_the_gradient_guard_holds_for_one_of_three_and_for_exactly_one(pulls: list[float]) -> None:
    tail = [replace(CALM, step=60 + n, pull_ratio=pull) for n, pull in enumerate(pulls)]
    assert changes(steer("gradient-guard", [*row(), *tail])) == []


def test_the_gradient_guard_needs_no_target() -> None:
    no_target = KlSettings(users=0.1)
    assert changes(steer("gradient-guard", row(PULLED, steps=50), no_target)) == [(49, "lower", 0.08)]


def test_the_articles_rule_lowers_above_and_raises_below_every_hundred_steps() -> None:
    assert changes(steer("article", row(FAR, steps=250))) == [(99, "lower", 0.09), (199, "lower", 0.081)]
    assert changes(steer("article", row(NEAR, steps=250))) == [(99, "raise", 0.105), (199, "raise", 0.11025)]


def test_the_articles_mean_moves_by_a_twentieth_a_step() -> None:
    # from the target, a KL of 5 times it: 1 + 4 × 0.05 = 1.2, which is not above; a second one, 1.39, is
    high = replace(CALM, capped=1.0)
    assert changes(steer("article", [*row(steps=99), replace(high, step=99)])) == []
    assert changes(steer("article", [*row(steps=98), *row(high, steps=2, first=98)])) == [(99, "lower", 0.09)]


def test_only_the_articles_rule_comes_with_a_warning() -> None:
    assert [name for name in ALL if POLICIES[name].warning] == ["article"]
    assert "wrong way" in POLICIES["article"].warning


def test_the_guarded_policy_lowers_what_dominates_whatever_kl_says() -> None:
    both = replace(FAR, pull_ratio=1.7)
    assert changes(steer("guarded", row(both, steps=50))) == [(49, "lower", 0.08)]


def test_the_guarded_policy_raises_a_far_kl_that_stays_while_the_pull_is_under_a_half() -> None:
    assert changes(steer("guarded", row(FAR, steps=50))) == [(49, "raise", 0.12)]
    assert changes(steer("guarded", row(replace(FAR, pull_ratio=0.5), steps=50))) == []
    assert changes(steer("guarded", row(replace(CALM, capped=0.3), steps=50))) == []


def test_the_guarded_policy_lets_a_kl_return_by_itself() -> None:
    falling = [replace(CALM, step=n, capped=2.0 * 0.98**n) for n in range(60)]
    assert falling[-1].capped is not None
    assert falling[-1].capped > 0.3
    made = steer("guarded", falling)
    assert changes(made) == []
    assert "on its way back" in made[-1].reason


def test_the_guarded_policy_raises_only_if_the_largest_pull_stays_under_five() -> None:
    # 0.12 × 41 = 4.92, 0.12 × 42 = 5.04
    assert changes(steer("guarded", row(replace(FAR, grad_max=41.0), steps=50))) != []
    held = steer("guarded", row(replace(FAR, grad_max=42.0), steps=50))
    assert (changes(held), last(held)) == ([], KlWhy.FORCE)
    assert "5.04" not in held[-1].reason
    assert "0.12 × the largest |k3'|, 42" in held[-1].reason


def test_the_guarded_policy_raises_nothing_that_it_cannot_check() -> None:
    held = steer("guarded", row(replace(FAR, grad_max=None), steps=50))
    assert (changes(held), last(held)) == ([], KlWhy.MISSING)


def test_the_guarded_policy_lowers_a_tenth_after_two_hundred_low_steps() -> None:
    assert changes(steer("guarded", row(NEAR, steps=260))) == [(200, "lower", 0.09)]


def test_the_guarded_policy_takes_no_raw_mean() -> None:
    held = steer("guarded", row(replace(FAR, capped=None)))
    assert last(held) is KlWhy.MISSING
    assert "kl.capped" in held[-1].reason


def test_without_a_target_the_guarded_policy_still_guards() -> None:
    no_target = KlSettings(users=0.1)
    assert changes(steer("guarded", row(PULLED, steps=50), no_target)) == [(49, "lower", 0.08)]
    assert last(steer("guarded", row(FAR, steps=50), no_target)) is KlWhy.NO_TARGET


def test_a_raise_after_which_the_pull_dominates_is_reverted_and_no_more_is_done() -> None:
    made = steer("guarded", [*row(FAR, steps=50), *row(replace(FAR, pull_ratio=1.4), steps=400, first=50)])
    assert changes(made) == [(49, "raise", 0.12), (99, "revert", 0.1)]
    assert last(made) is KlWhy.STOPPED
    assert "a person must look" in made[-1].reason


def test_a_lower_after_which_the_reward_falls_is_reverted() -> None:
    made = steer("guarded", [*row(PULLED, steps=50), *row(replace(CALM, reward=0.2), steps=60, first=50)])
    assert changes(made) == [(49, "lower", 0.08), (99, "revert", 0.1)]
    assert "reward 0.5 → 0.2" in made[99].reason


def test_a_lower_that_lets_kl_run_away_is_reverted_and_one_that_lets_it_rise_to_its_target_is_not() -> None:
    away = steer("guarded", [*row(PULLED, steps=50), *row(FAR, steps=50, first=50)])
    assert changes(away)[1:] == [(99, "revert", 0.1)]
    tied = replace(PULLED, capped=0.01)
    assert changes(steer("guarded", [*row(tied, steps=50), *row(steps=50, first=50)]))[1:] == []


def test_a_reward_that_falls_while_a_lower_brings_kl_down_is_not_its_doing() -> None:
    back = replace(CALM, capped=0.05, reward=0.2)
    made = steer("guarded", [*row(replace(PULLED, capped=0.3), steps=50), *row(back, steps=60, first=50)])
    assert changes(made) == [(49, "lower", 0.08)]


def test_a_reward_that_had_fallen_when_the_lower_was_decided_is_not_its_doing() -> None:
    low = replace(CALM, reward=0.2)
    burst = replace(PULLED, reward=0.2)
    fall = [*row(low, steps=2, first=55), *row(burst, steps=3, first=57), *row(low, steps=60, first=60)]
    made = steer("guarded", [*row(steps=55), *fall])
    assert changes(made) == [(58, "lower", 0.08)]


def test_a_change_that_a_person_approved_late_is_judged_by_what_came_after_it() -> None:
    # asked for at step 49, in force from step 80 on: the fall between is not its doing, that after it is
    waiting = row(replace(CALM, coefficient=0.1, reward=0.2), steps=30, first=50)
    applied = row(replace(CALM, coefficient=0.08, reward=0.2), steps=60, first=80)
    fallen = row(replace(CALM, coefficient=0.08, reward=0.1), steps=60, first=80)
    asked = row(PULLED, steps=50)
    made = steer("guarded", [*asked, *waiting, *fallen], obeys=False)
    assert changes(made)[0] == (49, "lower", 0.08)
    assert [d.why for d in made[80:130]] == [KlWhy.COOL_DOWN] * 50
    assert len(changes(steer("guarded", [*asked, *waiting, *applied], obeys=False))) >= 1


def test_a_coefficient_that_goes_back_after_it_was_in_force_is_another_hands() -> None:
    back = row(replace(CALM, coefficient=0.1), steps=5, first=60)
    made = steer("guarded", [*row(PULLED, steps=50), *row(steps=10, first=50), *back])
    assert made[60].why is KlWhy.OTHER_HAND


def test_a_raise_that_helps_is_followed_by_the_next_after_its_window() -> None:
    slower = [replace(FAR, step=50 + n, capped=0.45) for n in range(50)]
    made = steer("guarded", [*row(FAR, steps=50), *slower])
    assert changes(made)[0][:2] == (49, "raise")
    assert made[98].why is KlWhy.COOL_DOWN
    assert made[99].why in (KlWhy.RAISE, KlWhy.NO_CAUSE)


def test_a_change_that_the_trainer_never_applied_is_not_judged_and_not_reverted() -> None:
    steps = [*row(PULLED, steps=50), *row(replace(CALM, reward=0.1), steps=60, first=50)]
    assert changes(steer("guarded", steps, obeys=False)) == [(49, "lower", 0.08)]


def test_a_coefficient_set_by_another_hand_is_left_alone_for_a_window() -> None:
    theirs = replace(PULLED, coefficient=0.15)
    made = steer("guarded", [*row(steps=50), *row(theirs, steps=60, first=50)])
    assert made[50].why is KlWhy.OTHER_HAND
    assert changes(made) == [(100, "lower", 0.12)]


def test_a_coefficient_that_a_person_set_beyond_the_automatic_bounds_is_left_alone() -> None:
    made = steer("guarded", [*row(steps=50), *row(replace(PULLED, coefficient=0.5), steps=60, first=50)])
    assert (changes(made), last(made)) == ([], KlWhy.BEYOND)


def test_at_the_bound_a_person_is_asked() -> None:
    made = steer("gradient-guard", row(PULLED, steps=400))
    assert changes(made)[-1][2] == 0.05
    assert last(made) is KlWhy.AT_BOUND
    assert "ask a person" in made[-1].reason


def test_a_resume_learns_anew_and_waits_a_window() -> None:
    made = steer("guarded", [*row(steps=80), *row(PULLED, steps=60, first=40)])
    assert made[80].why is KlWhy.WENT_BACK
    assert [step for step, *_ in changes(made)] == [90]


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("alert", sorted(HOLDING_ALERTS))
def test_every_policy_holds_while_an_alert_says_that_kl_is_no_guide(name: str, alert: str) -> None:
    seen = replace(FAR, pull_ratio=3.0, alerts=frozenset({alert, "truncation"}))
    made = steer(name, row(seen, steps=120))
    assert {d.why for d in made} == {KlWhy.ALERT}
    assert alert in made[-1].reason
    assert "truncation" not in made[-1].reason


@pytest.mark.parametrize("name", ALL)
def test_an_alert_of_another_kind_holds_nothing(name: str) -> None:
    seen = replace(FAR, pull_ratio=3.0, alerts=frozenset({"truncation"}))
    assert changes(steer(name, row(seen, steps=120))) != []


@pytest.mark.parametrize("alert", sorted(HOLDING_ALERTS))
def test_only_an_alert_about_the_start_stops_to_hold_after_a_while_or_when_a_person_knows(alert: str) -> None:
    opened, known = (OpenAlert(name=alert, since_step=2, acknowledged=known) for known in (False, True))
    assert holding([opened], 201) == {alert}
    assert holding([opened], 202) == (set() if alert in START_ALERTS else {alert})
    assert holding([known], 3) == (set() if alert in START_ALERTS else {alert})


def test_every_holding_alert_is_one_of_the_catalogue() -> None:
    assert {rule.alert for rule in load_rules()} >= HOLDING_ALERTS


INPUTS = [(name, field) for name in ALL for field in POLICIES[name].inputs] + [(n, "coefficient") for n in ALL]


@pytest.mark.parametrize(("name", "field"), INPUTS)
@pytest.mark.parametrize(
    ("value", "why"),
    [
        (None, KlWhy.MISSING),
        (math.nan, KlWhy.NAN),
        (math.inf, KlWhy.INFINITE),
        (-math.inf, KlWhy.INFINITE),
        (1e200, KlWhy.INFINITE),
    ],
)
def test_every_input_that_is_no_number_is_a_hold_of_its_own_name(
    name: str, field: str, value: float | None, why: KlWhy
) -> None:
    seen = replace(FAR, coefficient=0.1, pull_ratio=3.0)
    for one in {"kl": ("capped", "k3")}.get(field, (field,)):
        seen = replace(seen, **{one: value})  # type: ignore[arg-type]
    made = steer(name, row(seen, steps=120), known=False)
    assert {d.why for d in made} == {why}


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("name", ALL)
def test_a_largest_derivative_that_is_no_number_holds(name: str, value: float) -> None:
    made = steer(name, row(replace(FAR, grad_max=value), steps=120))
    assert all(d.holds for d in made)
    assert last(made) in (KlWhy.NAN, KlWhy.INFINITE)


@pytest.mark.parametrize("name", ALL)
def test_one_bad_step_spoils_no_later_one(name: str) -> None:
    bad = replace(CALM, step=60, capped=math.nan, k3=math.inf, pull_ratio=-math.inf, reward=math.nan)
    made = steer(name, [*row(), bad, *row(replace(FAR, pull_ratio=3.0), steps=120, first=61)])
    assert made[60].holds
    assert changes(made) != []


@pytest.mark.parametrize("users", [None, 0.0, -0.1, math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("name", ALL)
def test_without_a_users_value_there_is_nothing_to_be_bounded_by(name: str, users: float | None) -> None:
    seen = replace(FAR, coefficient=0.1, pull_ratio=3.0)
    made = steer(name, row(seen, steps=120), KlSettings(users=users, target=0.2))
    assert {d.why for d in made} == {KlWhy.NO_BASELINE}


@pytest.mark.parametrize("coefficient", [0.0, -0.1])
@pytest.mark.parametrize("name", ALL)
def test_a_coefficient_of_zero_or_below_stays_what_it_is(name: str, coefficient: float) -> None:
    made = steer(name, row(replace(FAR, coefficient=coefficient, pull_ratio=3.0), steps=120))
    assert {d.why for d in made} == {KlWhy.NOT_POSITIVE}


@pytest.mark.parametrize("target", [None, 0.0, -1.0, math.nan, math.inf])
@pytest.mark.parametrize("name", [name for name in ALL if POLICIES[name].needs_target])
def test_a_rule_that_tracks_a_target_needs_one(name: str, target: float | None) -> None:
    made = steer(name, row(FAR, steps=120), KlSettings(users=0.1, target=target))
    assert {d.why for d in made} == {KlWhy.NO_TARGET}


@pytest.mark.parametrize(
    "wrong",
    [{"factor": 2.5}, {"factor": 1.0}, {"largest_change": 3.0}, {"change_steps": 0}, {"force_limit": math.nan}],
)
def test_settings_that_would_go_too_far_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        KlSettings(users=0.1, **wrong)  # type: ignore[arg-type]


def test_settings_come_from_the_run_and_the_operator() -> None:
    made = KlSettings.of({"kl_coef": 0.04, "kl_target": 0.1}, Limits(automatic_factor=1.5, cool_down_steps=80))
    assert (made.users, made.target, made.factor, made.change_steps) == (0.04, 0.1, 1.5, 80)
    assert KlSettings.of({"kl_coef": "much", "kl_target": True}, Limits()) == KlSettings(users=None)


def test_the_bounds_are_a_factor_around_the_users_value() -> None:
    assert USERS.bounds is not None
    assert (USERS.bounds.low, USERS.bounds.high) == (0.05, 0.2)


def test_a_decision_is_a_function_of_its_inputs_alone() -> None:
    steps: list[Observation] = [*row(FAR, steps=120), *row(PULLED, steps=120, first=120)]
    assert steer("guarded", steps) == steer("guarded", steps)
