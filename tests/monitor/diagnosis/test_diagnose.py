"""Alerts to incidents."""

from __future__ import annotations

import pytest

from rlvitals.contract.alert import Severity
from rlvitals_monitor.alerts import liveness
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
    assert named | set(table.codes) <= alerts | liveness.NAMES


def test_a_lost_trainer_is_one_incident_with_its_lateness_beneath() -> None:
    ladder = [Fired(alert=rule.name, severity=rule.severity, fired=42) for rule in liveness.RULES]
    lost = only(ladder)
    assert (lost.cause, lost.severity, lost.is_open) == ("trainer_lost", Severity.CRITICAL, True)
    assert set(lost.alerts) == liveness.NAMES
    assert only(ladder[:2]).cause == "trainer_stalled"
    assert diagnose(ladder[:1]) == []


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


@pytest.mark.parametrize(
    ("cause", "series"),
    [
        ("special_token_fault", {"policy__forced_loss_tokens": "0x10 8x10", "kl__grad_max": "1x10 5000x10"}),
        (
            "special_token_fault",
            {"text__special_inside": "0x15 0.2x10", "length__truncation_rate": "0.1x15 0.95x10"},
        ),
        (
            "repetition_loop",
            {"text__looping_completions": "0.01x20 0.7x10", "length__truncation_rate": "0.1x20 1x10"},
        ),
        ("nan_inf", {"numerics__nonfinite_weights": "0x5 3x5", "gradient__skipped_steps": "0x5 1x10"}),
        ("nan_inf", {"kl__nan_gradient_tokens": "0x5 1x5", "gradient__norm": "0.5x5 NaNx5"}),
        ("is_weight_collapse", {"correction__weight_mean": "0.06x5"}),
        ("clip_fraction_high", {"ratio__clip_share": "0.4x8"}),
        ("critic_divergence", {"critic__value_loss": "0.3x30 90x10", "gradient__norm": "0.5x33 60x7"}),
        ("critic_divergence", {"critic__gradient_norm": "2x5 NaNx3"}),
        ("no_gradient", {"reward__advantages_all_zero": "1x5", "reward__zero_std_groups": "0.3x5"}),
        ("no_gradient", {"gradient__skipped_steps": "0x6 1x9"}),
        ("language_mixing", {"text__foreign_script_share": "0x40 0.6x20", "reward__mean": "0.6x40 0.3x20"}),
        ("kl_drift", {"kl__coef": "0.01x12 0.2x6", "kl__grad_max": "40x18"}),
        ("ratio_explosion", {"numerics__nonfinite_ratios": "0x3 2x3", "gradient__norm": "0.5x6"}),
    ],
)
def test_the_cause_is_named_and_its_symptoms_go_with_it(cause: str, series: dict[str, str]) -> None:
    assert only(fired(**series)).cause == cause


def test_a_traded_component_is_the_cause_and_bears_its_own_name() -> None:
    lines = {
        "reward.mean": "0.7x60 0.7+0.005x60",
        "rewards/accuracy/mean": "0.4x60 0.4-0.005x60",
        "rewards/format/mean": "0.3x60 0.3+0.01x60",
    }
    incident = only(fired(**lines))
    assert incident.cause == "reward_hacking"
    assert "rewards/accuracy/mean" in incident.evidence[0]


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


def test_an_engine_that_falls_behind_by_an_update_a_step_gets_no_weights() -> None:
    incident = only(fired(ratio__rollout_logp_diff="0.012x55 0.025 0.041 0.06 0.085 0.11 0.14 0.2 0.3"))
    assert (incident.cause, incident.severity) == ("stale_rollout_policy", Severity.CRITICAL)
    assert set(incident.alerts) >= {"rollout_stale", "rollout_mismatch"}


def test_an_engine_that_jumps_away_is_a_mismatch_and_not_stale() -> None:
    assert only(fired(ratio__rollout_logp_diff="0.012x60 0.2x8")).cause == "rollout_mismatch"


def test_a_rate_of_zero_is_the_cause_of_weights_that_do_not_move() -> None:
    incident = only(
        fired(
            policy__learning_rate="1e-6x20 0x12",
            gradient__update_ratio="1e-6x20 0x12",
            gradient__skipped_steps="0x20 1x12",
        )
    )
    assert (incident.cause, incident.onset_step) == ("lr_zero", 25)


def test_completions_without_an_end_token_are_their_own_cause() -> None:
    assert only(fired(length__stop_rate="0.9x5 0x6", length__truncation_rate="0.1x11")).cause == "eos_missing"
