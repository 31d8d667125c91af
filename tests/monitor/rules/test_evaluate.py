from __future__ import annotations

import math
from copy import deepcopy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlvitals.contract.alert import Truth
from rlvitals_monitor.rules.evaluate import RuleMemory, depth_of, evaluate, read
from rlvitals_monitor.rules.loader import load_rules
from rlvitals_monitor.rules.rule import fill
from rlvitals_monitor.rules.window import Window
from tests.monitor.rules.judging import NAMES, START, a_rule, judge, window_of

INF, NAN = math.inf, math.nan
ACTIVE, INACTIVE, UNKNOWN = Truth.ACTIVE, Truth.INACTIVE, Truth.UNKNOWN


def test_k_of_n_counts_observed_steps_only() -> None:
    rule = a_rule("kl.k3 > 1", of="[2, 3]")
    series: list[dict[str, float]] = [
        {"kl.k3": 5.0},
        {},
        {"kl.k3": NAN},
        {"kl.k3": 5.0},
        {"kl.k3": 0.0},
        {"kl.k3": 0.0},
    ]
    found = judge(rule, series)
    assert [e.truth for e in found] == [INACTIVE, UNKNOWN, UNKNOWN, ACTIVE, ACTIVE, INACTIVE]
    assert (found[3].since_step, found[3].reason) == (1, "held on 2 of the last 3 observed steps, 2 needed")


def test_a_warm_up_is_unknown_and_says_so() -> None:
    found = judge(a_rule("kl.k3 > 1", warmup="2"), [{"kl.k3": 5.0}] * 3)
    assert [e.truth for e in found] == [UNKNOWN, UNKNOWN, ACTIVE]
    assert found[1].reason == "warm-up: step 2 of 2"


def test_a_needed_metric_that_is_missing_makes_the_rule_unknown() -> None:
    (found,) = judge(a_rule("default(kl.capped, kl.k3) > 1", needs='["kl.capped | kl.k3"]'), [{"kl.k1": 5.0}])
    assert (found.truth, found.reason) == (UNKNOWN, "kl.capped or kl.k3 is missing")
    (found,) = judge(a_rule("default(kl.capped, kl.k3) > 1", needs='["kl.capped | kl.k3"]'), [{"kl.k3": 5.0}])
    assert found.truth is ACTIVE


def test_the_comparison_that_holds_names_value_threshold_and_metric() -> None:
    (found,) = judge(a_rule("kl.k1 > 1 or kl.k3 > 2 * kl.k2"), [{"kl.k1": 0.0, "kl.k2": 1.0, "kl.k3": 7.0}])
    assert (found.metric, found.value, found.threshold) == ("kl.k3", 7.0, 2.0)


def test_what_the_summary_of_a_collapsed_reward_calls_its_mean_is_its_mean() -> None:
    (rule,) = (rule for rule in load_rules() if rule.key == "reward_drop/critical")
    last = judge(
        rule, [{"reward.mean": 0.6, "reward.min": 0.0}] * 40 + [{"reward.mean": 0.3, "reward.min": 0.0}] * 40
    )[-1]
    assert (last.truth, last.metric) == (ACTIVE, "reward.mean")
    assert (last.value, last.threshold) == (pytest.approx(0.3), pytest.approx(0.8 * 0.6))


def test_a_measured_metric_is_named_before_one_that_only_its_default_makes_true() -> None:
    rule = a_rule("(default(kl.capped, 4) >= 4 or kl.k2 > 9) and kl.k3 > 1", needs="[kl.k3]")
    (found,) = judge(rule, [{"kl.k3": 7.0}])
    assert (found.metric, found.value, found.threshold) == ("kl.k3", 7.0, 1.0)
    (found,) = judge(a_rule("default(kl.capped, kl.k3) > 1", needs="[kl.k3]"), [{"kl.k3": 7.0}])
    assert (found.metric, found.value) == ("kl.k3", 7.0)


def test_a_non_finite_value_is_told_as_it_is() -> None:
    (found,) = judge(a_rule("nonfinite(policy.loss)"), [{"policy.loss": -INF}])
    assert (found.metric, found.value, found.threshold) == ("policy.loss", -INF, None)


def test_a_quiet_rule_can_still_be_read() -> None:
    rule = a_rule("kl.k3 > 2")
    assert read(rule, window_of({"kl.k3": 1.5}), RuleMemory()) == ("kl.k3", 1.5, 2.0, True)
    assert read(rule, window_of({}), RuleMemory()) == ("kl.k3", None, None, True)


@pytest.mark.parametrize(
    ("expr", "bounds"),
    [
        ("kl.k3 > 1", True),
        ("mean(kl.k3, 1) > 1", True),
        ("peak(default(kl.capped, kl.k3)) > 1", True),
        ("kl.k3 - kl.k2 > 1", False),
        ("abs(kl.k3) > 1", False),
        ("2 * kl.k3 > 1", False),
        ("mean(kl.k3, 1) - kl.k2 > 1", False),
    ],
)
def test_a_threshold_is_a_bound_of_the_metric_only_where_it_is_held_against_values_of_it(
    expr: str, bounds: bool
) -> None:
    (found,) = judge(a_rule(expr), [{"kl.k3": 7.0, "kl.k2": 1.0, "kl.capped": 7.0}])
    assert (found.truth, found.bounds) == (ACTIVE, bounds)


@pytest.mark.parametrize(
    ("expr", "told"),
    [
        ("kl.k3 > 1", "kl.k3 = 7 (fires above 1)"),
        ("kl.k3 - kl.k2 >= 1", "kl.k3 - kl.k2 = 6 (fires at 1 or above)"),
        ("mean(kl.k3, 1) < 2 * kl.k3", "mean(kl.k3, 1) = 7 (fires below 14)"),
        ("kl.k3 == 7", "kl.k3 = 7 (fires at 7)"),
        ("kl.k1 > 1", "kl.k1 = inf (fires above 1)"),
        ("nonfinite(kl.coef)", "kl.coef = nan"),
    ],
)
def test_it_is_told_what_was_compared_with_what_and_how(expr: str, told: str) -> None:
    (found,) = judge(a_rule(expr), [{"kl.k3": 7.0, "kl.k2": 1.0, "kl.k1": INF, "kl.coef": NAN}])
    assert found.told == told


def test_the_action_s_argument_is_computed_on_the_step_that_is_active() -> None:
    rule = a_rule("kl.pull_ratio > 1", action="{command: set_kl_coef, argument: kl.coef * 0.5 / kl.pull_ratio}")
    quiet, loud, infinite = judge(
        rule, [{"kl.pull_ratio": p, "kl.coef": 0.4} for p in (0.5, 4.0, 0.0)] + [{"kl.pull_ratio": INF}]
    )[:3]
    assert (quiet.argument, loud.argument, infinite.argument) == (None, 0.05, None)
    (unknown,) = judge(rule, [{"kl.pull_ratio": 4.0}])
    assert (unknown.truth, unknown.argument) == (ACTIVE, None)


_ANY = st.dictionaries(
    st.sampled_from(NAMES), st.one_of(st.floats(), st.sampled_from([0.0, 1.0, NAN, INF, -INF])), max_size=30
)


@settings(deadline=None)
@given(st.lists(_ANY, max_size=6))
def test_the_catalogue_survives_any_values_and_changes_nothing_by_looking(steps: list[dict[str, float]]) -> None:
    rules = load_rules()
    window, memories = Window(depth_of(rules)), {rule.key: RuleMemory(open=True) for rule in rules}
    for place, values in enumerate(steps):
        window.push(place, START, values)
        for rule in rules:
            before = deepcopy(memories[rule.key])
            found = evaluate(rule, window, memories[rule.key])
            assert memories[rule.key] == before
            if all(name not in values for names in rule.needs for name in names) and rule.needs:
                assert found.truth is UNKNOWN
            read(rule, window, memories[rule.key])


def test_the_depth_of_a_window_is_the_longest_look_back_of_any_rule() -> None:
    rules = [a_rule("mean(kl.k3, 5) > median(kl.k3, 9)"), a_rule("mean(kl.k3, 7) > mean(kl.k1, 2)")]
    assert depth_of(rules) == {"kl.k3": 9, "kl.k1": 2}


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (1.0, "100 %"),
        (0.125, "12.5 %"),
        (1e-4, "0.01 %"),
        (math.nan, "nan %"),
        (math.inf, "inf %"),
        (-math.inf, "-inf %"),
    ],
)
def test_a_share_is_told_in_percent(value: float, told: str) -> None:
    assert (
        fill("{percent} of the completions", value, None, 3, "length.truncation_rate")
        == f"{told} of the completions"
    )


def test_a_share_that_is_missing_is_told_as_unknown() -> None:
    assert fill("{percent}", None, None, 3, "length.truncation_rate") == "unknown"
