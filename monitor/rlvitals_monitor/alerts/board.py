"""How every rule in force stands on several runs at once, and what an edit of the rules would change. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from rlvitals.contract.alert import Truth
from rlvitals.contract.rulebook import (
    BoardRun,
    RuleBoardRow,
    RuleBoardView,
    RuleCheckView,
    RuleFault,
    StandingView,
)
from rlvitals_monitor.alerts.memory import Verdict
from rlvitals_monitor.alerts.views import NOT_YET, dormancy
from rlvitals_monitor.rules.loader import EDITED
from rlvitals_monitor.rules.rule import Rule


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A run and what its rules remember of its newest attempt, as `view_rules` takes it."""

    run: BoardRun
    verdicts: Mapping[str, Verdict]
    seen: Collection[str]
    reasons: Mapping[str, str]


def board(rules: Sequence[Rule], judged: Sequence[Judged], left_out: int = 0) -> RuleBoardView:
    rows = tuple(_row(rule, judged) for rule in rules)
    return RuleBoardView(runs=tuple(one.run for one in judged), rules=rows, left_out=left_out)


def _row(rule: Rule, judged: Sequence[Judged]) -> RuleBoardRow:
    return RuleBoardRow(
        rule=rule.alert,
        severity=rule.severity,
        group=rule.group,
        expr=rule.expr.text,
        summary=rule.description or rule.summary,
        reason=rule.reason,
        where=rule.where,
        metrics=rule.expr.metrics,
        acts=rule.action.command.value if rule.action is not None else "",
        standings=tuple(_standing(rule, one) for one in judged),
    )


def _standing(rule: Rule, one: Judged) -> StandingView:
    verdict = one.verdicts.get(rule.key, NOT_YET)
    why = dormancy(rule, one.seen, one.reasons, judged=verdict is not NOT_YET)
    return StandingView(
        run=one.run.id,
        truth=Truth.UNKNOWN if why else verdict.truth,
        dormant=bool(why),
        reason=why or verdict.reason,
        value=verdict.value,
        threshold=verdict.threshold,
    )


def check_view(now: Sequence[Rule], then: Sequence[Rule]) -> RuleCheckView:
    """What differs between the rules in force and those that would be."""
    old, new = {rule.key: rule for rule in now}, {rule.key: rule for rule in then}
    return RuleCheckView(
        rules=len(then),
        added=tuple(key for key in new if key not in old),
        changed=tuple(key for key, rule in new.items() if key in old and _told(rule) != _told(old[key])),
        removed=tuple(key for key in old if key not in new),
    )


def fault_view(problems: Sequence[str], rules: int) -> RuleCheckView:
    """``problems`` are those of a `RuleFileError`; ``rules`` stay in force."""
    return RuleCheckView(rules=rules, faults=tuple(_fault(problem) for problem in problems))


def _fault(problem: str) -> RuleFault:
    name, _, rest = problem.partition(":")
    line, _, words = rest.partition(": ")
    mine = name == EDITED and line.isdecimal()
    return RuleFault(line=int(line), words=words) if mine else RuleFault(line=0, words=problem)


def _told(rule: Rule) -> str:
    """The rule as it is written, comments and all; where it is written makes no difference."""
    return f"{rule.group}\n{rule.source}"
