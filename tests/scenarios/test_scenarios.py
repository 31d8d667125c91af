"""Every scenario file beside this one, judged by the live engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlvitals.contract.alert import Severity
from rlvitals_monitor.alerts.scenario import Scenario, read_scenarios, run
from rlvitals_monitor.rules.document import RuleFileError
from rlvitals_monitor.rules.loader import load_rules
from rlvitals_monitor.rules.rule import Rule

HERE = Path(__file__).parent
SCENARIOS = [s for path in sorted(HERE.glob("*.yaml")) for s in read_scenarios(path.read_text("utf-8"), path.name)]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: f"{scenario.where} {scenario.name}")
def test_scenario(scenario: Scenario) -> None:
    assert run(scenario, load_rules()) == []


def test_every_rule_is_seen_firing_in_some_scenario() -> None:
    fired = {(alert, severity) for s in SCENARIOS for alert, severity, _, _ in s.expected}
    shipped = {(r.alert, r.severity.value) for r in load_rules()}
    assert shipped - fired == set()


def test_every_alert_has_a_near_miss_in_which_it_could_be_judged_and_stays_quiet() -> None:
    missed = {rule.alert for s in SCENARIOS for rule in load_rules() if _could(rule, s) and _is_silent(rule, s)}
    assert {rule.alert for rule in load_rules()} - missed == set()


def _could(rule: Rule, scenario: Scenario) -> bool:
    logged = {name for _, _, values in scenario.steps for name in values}
    derived = {"component.traded", "component.constant_steps"} if any("/" in name for name in logged) else set()
    return all(any(name in logged | derived for name in names) for names in rule.needs)


def _is_silent(rule: Rule, scenario: Scenario) -> bool:
    """Information is checked only where it is named."""
    checked = rule.severity is not Severity.INFO or rule.alert in scenario.quiet
    return checked and all(alert != rule.alert for alert, _, _, _ in scenario.expected)


def _scenario(series: str, alerts: str) -> Scenario:
    (made,) = read_scenarios(f"scenarios: [{{name: n, series: {{{series}}}, alerts: [{alerts}]}}]", "s.yaml")
    return made


def test_an_alert_that_is_expected_and_does_not_come_is_told() -> None:
    told = run(_scenario("gradient.norm: 1x5", "{alert: nonfinite, severity: critical, fires: 3}"), load_rules())
    assert told == ["s.yaml:1: n: expected nonfinite (critical) fired at 3, open at the end"]


def test_an_alert_that_nobody_expected_is_told() -> None:
    told = run(_scenario("gradient.norm: 1x5 NaN", ""), load_rules())
    assert told == ["s.yaml:1: n: did not expect nonfinite (critical) fired at 6, open at the end"]


def test_an_unreadable_value_is_named_with_its_line() -> None:
    text = "scenarios:\n  - name: n\n    series:\n      a: 1x3 two\n    alerts: []\n"
    with pytest.raises(RuleFileError, match=r"^s\.yaml:4: expected values such as .*, got 'two'$"):
        read_scenarios(text, "s.yaml")
