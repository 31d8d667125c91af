from __future__ import annotations

import json
import math
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

import pytest
from plotly.utils import PlotlyJSONEncoder

from rlvitals.contract.alert import AlertState, Severity, Silenced
from rlvitals.contract.command import Bounds, CommandKind, CommandState
from rlvitals.contract.view import RunState
from rlvitals_dashboard import alert_panel, command_list, command_panel, components
from tests.dashboard.fake import RUN, FakeService
from tests.dashboard.synthetic import lively

NOW = datetime(2026, 3, 1, tzinfo=timezone.utc)


@pytest.fixture(scope="module")
def fake() -> FakeService:
    return lively()


def said(component: Any) -> str:
    """All text of a component, in order, as a reader gets it."""
    return _text(json.loads(json.dumps(component, cls=PlotlyJSONEncoder)))


def _text(node: Any) -> str:
    if isinstance(node, dict):
        return _text(node.get("props", {}).get("children"))
    if isinstance(node, list):
        return "".join(_text(child) for child in node)
    return "" if node is None else str(node)


def test_a_head_says_the_light_its_reason_and_the_numbers(fake: FakeService) -> None:
    words = said(components.run_head(fake.runs[RUN]))
    for word in ("Unhealthy", "KL pull dominates", "Running", "update", "119", "41.7 steps/min", "0.8"):
        assert word in words


def test_a_phase_that_says_no_more_than_the_state_is_left_out(fake: FakeService) -> None:
    over = replace(fake.runs[RUN], state=RunState.FINISHED, phase="finished")
    assert said(components.run_head(over)).lower().count("finished") == 1


def test_alerts_are_sorted_firing_first_and_worst_first(fake: FakeService) -> None:
    words = said(alert_panel.alert_list(list(fake.alerts.values())))
    places = [words.index(rule) for rule in ("kl_pull_dominates", "truncation_high", "nonfinite_gradient")]
    assert places == sorted(places)


def test_an_alerts_value_may_be_nan_and_says_so(fake: FakeService) -> None:
    one = replace(fake.alerts["al-3"], value=-math.inf, measured="mean(gradient.norm, 25)", sign="<")
    assert "mean(gradient.norm, 25) −Inf, fires below 0, since" in said(alert_panel.alert_card(one))
    assert "NaN, threshold 0" in said(alert_panel.alert_card(fake.alerts["al-3"]))


def test_only_a_firing_alert_can_be_acknowledged(fake: FakeService) -> None:
    assert "I have seen it" in said(alert_panel.alert_card(fake.alerts["al-1"]))
    assert fake.alerts["al-3"].state is AlertState.RESOLVED
    assert "I have seen it" not in said(alert_panel.alert_card(fake.alerts["al-3"]))


def test_an_alerts_card_says_that_it_is_silenced_until_when_and_by_whom(fake: FakeService) -> None:
    alert = fake.alerts["al-1"]
    assert "Silenced" not in said(alert_panel.alert_card(alert))
    quiet = Silenced(until=alert.since_time, who="ada\u202e", why="")
    words = said(alert_panel.alert_card(replace(alert, silenced=quiet)))
    assert "Silenced by ada" in words
    assert "\u202e" not in words
    assert f"{alert.since_time:%Y-%m-%d %H:%M:%S} UTC" in words


@pytest.mark.parametrize("kind", list(CommandKind))
def test_every_kind_of_command_says_what_it_is_and_what_it_will_do(fake: FakeService, kind: CommandKind) -> None:
    from dataclasses import replace

    proposed = replace(fake.commands["c-1"], kind=kind)
    words = said(command_panel.decision(proposed, fake.runs[RUN]))
    assert command_panel.KINDS[kind] in words
    assert command_panel.CONSEQUENCES[kind] in words


def test_a_proposal_is_rounded_but_never_out_of_its_bounds(fake: FakeService) -> None:
    from dataclasses import replace

    long = replace(fake.commands["c-1"], argument=6.303944201, bounds=Bounds(low=0.04, high=400))
    tight = replace(long, bounds=Bounds(low=6.303, high=6.304))
    assert command_panel.rounded(long) == 6.3
    assert command_panel.rounded(tight) == 6.303944201


def test_past_actions_show_before_and_after_and_who(fake: FakeService) -> None:
    words = said(command_list.command_list(list(fake.commands.values())))
    assert "0.8 → 0.4" in words
    assert "at step 96" in words
    assert "anna" in words
    assert fake.commands["c-1"].state is CommandState.PROPOSED
    assert words.count("Set the KL coefficient") == 1


def test_completions_come_worst_first(fake: FakeService) -> None:
    words = said(components.text_list(fake.texts))
    assert words.index("sample 0") < words.index("sample 3")


def test_a_long_completion_is_cut_and_says_how_much_is_left() -> None:
    words = said(components.visible("x" * 5000))
    assert words.endswith(f"… {5000 - components.LONGEST_TEXT:,} more characters")


@pytest.mark.parametrize("runbook", ["javascript:alert(1)", "data:text/html,x", "docs/runbooks/x.md"])
def test_only_a_web_address_becomes_a_link(runbook: str) -> None:
    assert "href" not in json.dumps(alert_panel._runbook(runbook), cls=PlotlyJSONEncoder)


def test_dormant_and_undecided_rules_have_their_reason(fake: FakeService) -> None:
    words = said(components.rule_list(fake.rules))
    assert "1 rule watching" in words
    assert "ratio.ess is missing" in words
    assert "warm-up: 20 of 50 steps" in words


def test_a_reason_that_all_severities_of_a_rule_share_is_told_once(fake: FakeService) -> None:
    from dataclasses import replace

    dormant = next(rule for rule in fake.rules if rule.dormant)
    twins = [dormant, replace(dormant, severity=Severity.INFO), replace(dormant, reason="another reason")]
    words = said(components.rule_list(twins))
    assert "3 rules cannot run here" in words
    assert words.count("ratio.ess is missing") == 1
    assert "another reason" in words


def test_a_run_without_a_name_shows_its_id(fake: FakeService) -> None:
    from dataclasses import replace

    assert said(components.named(replace(fake.runs[RUN], name=""))) == RUN


def test_a_coefficient_that_is_missing_is_a_dash_and_nan_is_nan(fake: FakeService) -> None:
    from dataclasses import replace

    run = fake.runs[RUN]
    assert "KL coefficient–" in said(components.run_head(replace(run, kl_coef=None)))
    assert "KL coefficientNaN" in said(components.run_head(replace(run, kl_coef=math.nan)))
