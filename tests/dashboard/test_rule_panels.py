"""What the pages of rules make of the service's answers, without a browser."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from rlvitals.contract.alert import Severity, Truth
from rlvitals.contract.rulebook import (
    BacktestView,
    BoardRun,
    JudgedView,
    RuleBoardRow,
    RuleBoardView,
    RuleCheckView,
    RuleFault,
    StandingView,
    TriedAlert,
    TriedDifference,
    TriedRun,
)
from rlvitals_dashboard.import_panel import progress, report
from rlvitals_dashboard.rule_board import lines_of
from rlvitals_dashboard.rule_draft import faults, with_rule
from rlvitals_dashboard.rule_trial import chosen_of, outcomes

RUNS = (BoardRun(id="a", name="one", project="p"), BoardRun(id="b", name="two", project="p"))
QUIET = StandingView(run="a", truth=Truth.INACTIVE, value=0.5, threshold=1.0)
ROW = RuleBoardRow(
    rule="kl_high",
    severity=Severity.WARNING,
    group="kl",
    expr="kl.k3 > 1",
    summary="s",
    reason="r",
    where="kl.yaml:1",
)


def board(*standings: StandingView) -> RuleBoardView:
    return RuleBoardView(runs=RUNS[: len(standings)], rules=(replace(ROW, standings=standings),))


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0.5, "0.5 (threshold 1)"),
        (math.nan, "NaN (threshold 1)"),
        (math.inf, "+Inf (threshold 1)"),
        (-math.inf, "−Inf (threshold 1)"),
    ],
)
def test_the_value_on_one_run_is_said_as_what_it_is(value: float, said: str) -> None:
    (line,) = lines_of(board(replace(QUIET, value=value)))
    assert line.says == said


def test_a_missing_value_is_said_as_missing_and_none_at_all_as_nothing() -> None:
    assert lines_of(board(replace(QUIET, value=None)))[0].says == "missing (threshold 1)"
    assert lines_of(board(replace(QUIET, value=None, threshold=None)))[0].says == ""


def test_what_holds_on_one_run_outweighs_what_is_quiet_on_another() -> None:
    (line,) = lines_of(board(QUIET, replace(QUIET, run="b", truth=Truth.ACTIVE, value=2.0)))
    assert (line.state, line.holding, line.says) == ("holds", ("b",), "2 (threshold 1)")


def test_a_rule_that_cannot_run_says_why_and_without_a_run_it_stands_nowhere() -> None:
    mute = StandingView(run="a", truth=Truth.UNKNOWN, dormant=True, reason="beta is 0: no KL is computed")
    (line,) = lines_of(board(mute))
    assert (line.state, line.says) == ("dormant", "beta is 0: no KL is computed")
    assert lines_of(board())[0].state == "nowhere"


def test_rules_are_found_by_state_and_by_words() -> None:
    assert lines_of(board(QUIET), "holds") == []
    assert len(lines_of(board(QUIET), "quiet", "KL.K3")) == 1
    assert lines_of(board(QUIET), words="reward") == []


def test_values_of_quiet_rules_on_many_runs_do_not_draw_the_page_anew() -> None:
    before, after = (
        lines_of(board(replace(QUIET, value=v), replace(QUIET, run="b")))[0].shown for v in (0.1, 0.2)
    )
    assert before == after


def test_an_alert_is_new_gone_moved_or_as_before() -> None:
    def differs(alert: str, ours: tuple[int, ...], theirs: tuple[int, ...]) -> TriedDifference:
        return TriedDifference(run="a", alert=alert, severity=Severity.WARNING, ours=ours, theirs=theirs)

    stays = TriedAlert(alert="stays", severity=Severity.CRITICAL, step=7)
    came = TriedAlert(alert="came", severity=Severity.WARNING, step=3)
    told = BacktestView(
        runs=(TriedRun(run="a", steps=9, alerts=(came, stays)),),
        rules=(),
        bad_runs=0,
        quiet=(),
        false_alarms=0,
        healthy_steps=9,
        false_per_thousand=0.0,
        differences=(differs("came", (3,), ()), differs("went", (), (5,)), differs("later", (8,), (4,))),
    )
    assert [(one.alert, one.kind, one.before, one.after) for one in outcomes(told)] == [
        ("came", "new", (), (3,)),
        ("went", "gone", (5,), ()),
        ("later", "moved", (4,), (8,)),
        ("stays", "same", (7,), (7,)),
    ]


def test_a_half_written_address_chooses_what_can_be_read_of_it() -> None:
    assert chosen_of("a,b@120,,@3,c@soon") == {"a": None, "b": 120, "c": None}
    assert chosen_of("") == {}


def test_a_rule_is_put_among_those_that_are_there() -> None:
    one = "groups:\n  - name: kl\n    rules:\n    - alert: a\n"
    assert with_rule("", one) == one
    assert with_rule("# mine\ngroups:\n  - name: own\n    rules: []\n", one) == (
        "# mine\ngroups:\n  - name: kl\n    rules:\n    - alert: a\n  - name: own\n    rules: []\n"
    )
    assert with_rule("off: [b]\n", one) == f"off: [b]\n{one}"


def test_a_fault_shows_its_line_and_one_of_another_file_only_its_words() -> None:
    told = RuleCheckView(
        rules=3, faults=(RuleFault(line=2, words="expected x"), RuleFault(line=0, words="f.yaml:1: y"))
    )
    said = str(faults(told, "one\n<b>two</b>\n"))
    assert "Line 2" in said
    assert "<b>two</b>" in said
    assert "f.yaml:1: y" in said
    assert "Line 0" not in said


def test_how_far_the_rules_are_is_said_also_before_the_first_step() -> None:
    assert "No step is there yet" in str(progress(JudgedView(step=None, last_step=None)))
    assert "Judged up to step 0 of 9" in str(progress(JudgedView(step=None, last_step=9)))
    assert "All steps up to 9" in str(progress(JudgedView(step=9, last_step=9)))


@pytest.mark.parametrize("body", [None, {}, [], "no", {"title": None, "detail": None}])
def test_an_answer_that_is_none_is_said(body: object) -> None:
    assert "The service answered 502" in str(report({"status": 502, "body": body}, "/ui/"))
