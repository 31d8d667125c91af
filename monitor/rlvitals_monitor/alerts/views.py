"""How each rule stands on a run, for people: dormant and unknown rules say why. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from rlvitals.contract.alert import Truth
from rlvitals.contract.view import RuleView
from rlvitals_monitor.alerts.memory import Verdict
from rlvitals_monitor.rules.rule import Rule

NOT_YET = Verdict()


def view_rules(
    rules: Sequence[Rule], verdicts: Mapping[str, Verdict], seen: Collection[str], reasons: Mapping[str, str]
) -> tuple[RuleView, ...]:
    """``seen``: metrics that the attempt ever reported; ``reasons``: metric → why it could not be measured."""
    return tuple(_view(rule, verdicts.get(rule.key, NOT_YET), seen, reasons) for rule in rules)


def view_catalogue(rules: Sequence[Rule]) -> tuple[RuleView, ...]:
    """The rules themselves, without a run."""
    about = Verdict(reason="the catalogue, without a run")
    return tuple(_filled(rule, about, dormant=False, reason=about.reason) for rule in rules)


def dormancy(rule: Rule, seen: Collection[str], reasons: Mapping[str, str], *, judged: bool) -> str:
    """Why the rule cannot run here; empty when it can. Before the first step only a given reason counts."""
    for names in rule.needs:
        if any(name in seen for name in names):
            continue
        given = next((f"{name}: {reasons[name]}" for name in names if reasons.get(name)), "")
        if given:
            return given
        if judged:
            return f"this run does not report {' or '.join(names)}"
    return ""


def _view(rule: Rule, verdict: Verdict, seen: Collection[str], reasons: Mapping[str, str]) -> RuleView:
    why = dormancy(rule, seen, reasons, judged=verdict is not NOT_YET)
    return _filled(rule, verdict, dormant=bool(why), reason=why or verdict.reason)


def _filled(rule: Rule, verdict: Verdict, *, dormant: bool, reason: str) -> RuleView:
    return RuleView(
        rule=rule.alert,
        severity=rule.severity,
        truth=Truth.UNKNOWN if dormant else verdict.truth,
        dormant=dormant,
        reason=reason,
        expr=rule.expr.text,
        summary=rule.description or rule.summary,
        value=verdict.value,
        threshold=verdict.threshold,
        metric=verdict.metric,
        metrics=rule.expr.metrics,
    )
