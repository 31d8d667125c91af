"""Alerts to incidents."""

from __future__ import annotations

import pytest

from rlvitals.contract.alert import Severity
from rlvitals_monitor.alerts.replay import episodes, replay
from rlvitals_monitor.alerts.scenario import read_scenarios
from rlvitals_monitor.diagnosis.diagnose import Incident, diagnose, one_of_each
from rlvitals_monitor.diagnosis.fired import Fired
from rlvitals_monitor.diagnosis.table import Table, load_table, read_table
from rlvitals_monitor.replay import fired_of
from rlvitals_monitor.rules.loader import load_rules


def fired(**series: str) -> list[Fired]:
    """What the catalogue makes of series in the scenarios' notation; ``__`` in a name is a dot."""
    lines = [f"      {name.replace('__', '.')}: {text}" for name, text in series.items()]
    text = "\n".join(["scenarios:", "  - name: x", "    series:", *lines, "    alerts: []"])
    (scenario,) = read_scenarios(text, "x")
    return [fired_of(episode) for episode in episodes(replay(load_rules(), scenario.steps, {}))]


def only(found: list[Fired]) -> Incident:
    (incident,) = diagnose(found)
    return incident


def test_every_alert_of_the_catalogue_has_a_code_and_every_warning_a_cause() -> None:
    table = load_table()
    led = {name.partition("/")[0] for cause in table.causes for name in cause.leads}
    for rule in load_rules():
        if rule.group == "rlvitals":
            continue
        assert table.codes_of(rule.alert, rule.severity.value), rule.key
        if rule.severity is not Severity.INFO:
            explained = {name for cause in table.causes for name in cause.explains}
            assert rule.alert in led | explained, rule.key


def test_the_table_names_only_alerts_that_there_are() -> None:
    alerts = {rule.alert for rule in load_rules()} | {rule.key for rule in load_rules()}
    table = load_table()
    named = {name for cause in table.causes for name in (*cause.leads, *cause.explains, *cause.beside)}
    assert named | set(table.codes) <= alerts


def test_a_nan_is_the_cause_and_what_follows_are_its_symptoms() -> None:
    found = fired(gradient__norm="0.5x20 NaNx5", length__truncation_rate="0.1x20 1x5")
    incident = only(found)
    assert (incident.cause, incident.severity, incident.onset_step) == ("nan_inf", Severity.CRITICAL, 21)
    assert set(incident.alerts) >= {"nonfinite", "truncation"}


def test_a_forced_token_is_named_before_the_gradient_that_it_breaks() -> None:
    found = fired(
        kl__grad_top_id_share="0.1x20 0.99x10", kl__grad_max="1x20 5000x10", gradient__norm="0.5x25 NaNx5"
    )
    incident = only(found)
    assert incident.cause == "special_token_fault"
    assert "nonfinite" in incident.alerts
    assert "kl.grad_top_id_share" in incident.evidence[0]


def test_two_causes_far_apart_are_two_incidents_in_the_order_of_onset() -> None:
    found = fired(
        reward__zero_std_groups="0.3x10 1x5 0.3x300", gradient__norm="0.5x300 NaN", policy__entropy="0.8x315"
    )
    assert [incident.cause for incident in diagnose(found)] == ["zero_variance", "nan_inf"]


def test_information_alone_is_no_incident() -> None:
    assert diagnose(fired(length__truncation_rate="0.1x40")) == []


def test_the_same_cause_twice_is_told_once_with_its_first_onset() -> None:
    found = fired(gradient__norm="0.5x5 NaN 0.5x300 NaN")
    assert [i.onset_step for i in diagnose(found)] == [6, 307]
    (told,) = one_of_each(diagnose(found))
    assert told.onset_step == 6


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("codes: {}", "expected `codes` and `causes`"),
        ("codes: {}\ncauses: [{cause: x, led: []}]", "cause 1: unknown key led"),
        ("codes: {}\ncauses: [{cause: x}]", "cause 1: .*leads"),
        ("codes: {}\ncauses: [{cause: x, confidence: sure}]", "cause 1: confidence must be one of"),
    ],
)
def test_a_fault_in_the_table_names_its_entry(text: str, expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        read_table(text)


def test_an_empty_table_explains_nothing() -> None:
    assert diagnose(fired(gradient__norm="NaNx3"), Table(codes={}, causes=())) == []
