from __future__ import annotations

from pathlib import Path

import pytest

from rlvitals.contract.alert import Severity
from rlvitals.contract.metrics import BY_NAME
from rlvitals_monitor.rules.document import RuleFileError
from rlvitals_monitor.rules.loader import CATALOGUE, catalogue_table, check, load_rules, load_text
from rlvitals_monitor.rules.rule import Duration, fill

ROOT = Path(__file__).parents[3]
GOOD = """\
groups:
  - name: own
    rules:
      - alert: slow
        expr: progress.step_time > 60
        for: 5 steps
        labels: {severity: warning}
        annotations: {summary: "steps take {value} s"}
"""


def problems(text: str) -> tuple[str, ...]:
    with pytest.raises(RuleFileError) as caught:
        load_text(text, "r.yaml")
    return caught.value.problems


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("expr: progress", "exprr: progress", "r.yaml:5: expected one of alert, expr, for,"),
        ("        expr: progress.step_time > 60\n", "", "r.yaml:4: expected 'expr' to be present"),
        ("progress.step_time", "progress.steptime", "r.yaml:5: expected a known metric, got 'progress.steptime'"),
        ("> 60", "> ", "r.yaml:5: expected an expression"),
        ("> 60", "+ 60", "r.yaml:5: expected a truth"),
        ("5 steps", "5 stops", 'r.yaml:6: expected a duration such as "20 steps" or "5m"'),
        ("5 steps", "0 steps", "r.yaml:6: expected a duration above 0"),
        ("for: 5 steps", "of: [3, 2]", "r.yaml:6: expected a whole number from 1 to 2, got '3'"),
        ("for: 5 steps", "of: [3]", "r.yaml:6: expected [k, n]"),
        ("for: 5 steps", "warmup: -1", "r.yaml:6: expected a whole number from 0"),
        ("for: 5 steps", "needs: [kl.k9]", "r.yaml:6: expected a known metric, got 'kl.k9'"),
        ("for: 5 steps", "clear: kl.k3", "r.yaml:6: expected a truth"),
        ("for: 5 steps", "action: {command: explode}", "r.yaml:6: expected one of pause, resume, stop"),
        ("for: 5 steps", "action: {command: set_kl_coef}", "r.yaml:6: expected an argument for set_kl_coef"),
        ("for: 5 steps", "action: {command: pause, argument: '1'}", "r.yaml:6: expected no argument for pause"),
        ("for: 5 steps", "action: {command: scale_lr, argument: kl.k3 > 1}", "r.yaml:6: expected a number"),
        ("for: 5 steps", "for: 5 steps\n        for: 6 steps", "r.yaml:7: expected 'for' once, got it twice"),
        ("severity: warning", "severity: fatal", "r.yaml:7: expected one of info, warning, critical, got 'fatal'"),
        ("{value}", "{valeu}", "r.yaml:8: expected one of value, percent, threshold, step, metric in braces"),
        ("alert: slow", "alert: Slow Steps", "r.yaml:4: expected a name of small letters"),
        ("    rules:\n", "    rules: nothing\n", "r.yaml:"),
        ("groups:", "groups: [", "r.yaml:"),
        (
            "groups:",
            "groupss:",
            "r.yaml:1: expected one of groups, metrics, off, got 'groupss'; did you mean 'groups'?",
        ),
        (
            "for: 5 steps",
            "needs: [kl.k33]",
            "r.yaml:6: expected a known metric, got 'kl.k33'; did you mean 'kl.k3'?",
        ),
    ],
)
def test_every_problem_is_told_with_file_line_and_what_was_expected(old: str, new: str, expected: str) -> None:
    assert old in GOOD
    (found,) = problems(GOOD.replace(old, new))
    assert found.startswith(expected)


def test_all_problems_of_a_file_come_at_once() -> None:
    second = (
        GOOD.replace("groups:\n  - name: own\n    rules:\n", "").replace("slow", "other").replace("5 steps", "x")
    )
    assert len(problems(GOOD.replace("> 60", ">") + second)) == 2


def test_the_same_alert_twice_with_one_severity_is_refused() -> None:
    twin = GOOD.replace("groups:\n  - name: own\n    rules:\n", "")
    (found,) = problems(GOOD + twin)
    assert found == "r.yaml:9: expected one rule slow of severity warning, got another at r.yaml:4"


@pytest.mark.parametrize(
    "text", ["", "- a\n", "just text", "a: &x [*x]\n", "a: !!python/object:os.system {}\n", "\x00"]
)
def test_a_file_that_is_no_rule_file_is_refused(text: str) -> None:
    assert problems(text)[0].startswith("r.yaml:1: expected ")


def test_own_metrics_are_declared_before_they_are_used() -> None:
    text = GOOD.replace("progress.step_time", "my.queue")
    assert "expected a known metric" in problems(text)[0]
    (rule,) = load_text("metrics: [my.queue]\n" + text)
    assert rule.needs == (("my.queue",),)


def test_a_user_s_rule_takes_the_place_of_the_shipped_one_and_off_takes_rules_away(tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    text = GOOD.replace("alert: slow", "alert: ratio_extreme").replace("progress.step_time > 60", "ratio.max > 99")
    own.write_text("off: [truncation, entropy_at_start]\n" + text, encoding="utf-8")
    rules = {rule.key: rule for rule in load_rules([own])}
    assert rules["ratio_extreme/warning"].expr.text == "(ratio.max > 99.0)"
    assert "ratio_extreme/critical" in rules
    assert not [key for key in rules if key.startswith(("truncation/", "entropy_at_start/"))]


@pytest.mark.parametrize("alert", sorted({rule.alert for rule in load_rules()}))
def test_each_shipped_alert_can_be_taken_away_whoever_waits_for_it(tmp_path: Path, alert: str) -> None:
    own = tmp_path / "own.yaml"
    own.write_text(f"off: [{alert}]\n", encoding="utf-8")
    assert alert not in {rule.alert for rule in load_rules([own])}


def test_an_action_may_only_name_alerts_that_exist(tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text(GOOD.replace("for: 5 steps", "action: {command: pause, unless: [no_such]}"), encoding="utf-8")
    (found,) = check([own])
    assert found.endswith("own.yaml:4: expected the name of an alert in unless or inhibited_by, got 'no_such'")
    own.write_text(GOOD.replace("for: 5 steps", "inhibited_by: [no_such]"), encoding="utf-8")
    assert check([own]) == [found]


def test_a_file_that_cannot_be_read_is_a_problem_and_no_crash(tmp_path: Path) -> None:
    (tmp_path / "latin.yaml").write_bytes(b"\xff\xfe")
    assert all(
        "expected a readable UTF-8 file" in p for p in check([tmp_path / "no.yaml", tmp_path / "latin.yaml"])
    )


def test_the_catalogue_loads_and_each_rule_gives_a_reason_advice_and_a_runbook() -> None:
    rules = load_rules()
    assert len(rules) >= 40
    for rule in rules:
        assert rule.reason, rule.key
        assert rule.description, rule.key
        assert (ROOT / rule.runbook).is_file(), rule.runbook
        assert all(name in BY_NAME for name in rule.expr.metrics)


def test_every_runbook_belongs_to_a_shipped_alert_or_to_the_learned_ones() -> None:
    pages = {path.stem for path in (ROOT / "docs" / "runbooks").glob("*.md")} - {"README", "learned_band"}
    assert pages == {rule.alert for rule in load_rules()}


def test_no_rule_looks_at_the_loss_s_value_or_at_the_learning_rate_alone() -> None:
    """Consoles print a small rate as 0: it is a warning only beside weights that do not move."""
    for rule in load_rules():
        if "policy.learning_rate" in rule.expr.metrics:
            assert rule.severity is Severity.INFO or "gradient.update_ratio" in rule.expr.metrics
        if "policy.loss" in rule.expr.metrics:
            assert rule.alert == "nonfinite"


def test_an_alert_that_nobody_defines_cannot_be_off(tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text("groups: []\noff: [truncaton]\n")
    with pytest.raises(
        RuleFileError, match=r"own\.yaml:2: .* in off, got 'truncaton'; did you mean 'truncation'\?"
    ):
        load_rules([own])


def test_the_generated_page_names_every_rule() -> None:
    page = catalogue_table()
    for rule in load_rules():
        assert f"[{rule.alert}](runbooks/{rule.alert}.md) | {rule.severity.value} |" in page
    assert sum(1 for _ in CATALOGUE.glob("*.yaml")) >= 8


def test_durations_are_steps_or_time() -> None:
    assert [str(Duration.parse(t)) for t in ("20 steps", "1 step", "30s", "5m", "2h")] == [
        "20 steps",
        "1 step",
        "30s",
        "300s",
        "7200s",
    ]
    with pytest.raises(ValueError, match="expected a duration"):
        Duration.parse("five steps")


def test_an_annotation_is_filled_with_numbers_and_nothing_else() -> None:
    assert fill("{value} over {threshold} at {step} in {metric}", 0.123456, None, 7, "kl.k3") == (
        "0.1235 over unknown at 7 in kl.k3"
    )
    assert fill("{value}", float("nan"), 1.0, 7, "") == "nan"
    assert fill("{0.__class__} {other}", 1.0, 1.0, 7, "") == "{0.__class__} {other}"


def test_severities_of_one_alert_are_different_rules() -> None:
    kinds = [rule.severity for rule in load_rules() if rule.alert == "truncation"]
    assert kinds == [Severity.CRITICAL, Severity.WARNING, Severity.INFO]
