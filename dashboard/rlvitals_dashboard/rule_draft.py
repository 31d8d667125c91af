"""A rule document while it is edited: what is wrong with it, what it would change, its versions. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dash import dcc, html

from rlvitals.contract.rulebook import EditedRulesView, RuleCheckView, RuleFault
from rlvitals_dashboard.components import LONGEST_NAME, Component, mark, notice, visible, when
from rlvitals_dashboard.language import t
from rlvitals_dashboard.theme import CHANGES
from rlvitals_dashboard.words import plural

FAULTS_MAX = 20
_GROUPS = re.compile(r"^groups:[ ]*\n", re.MULTILINE)
EXAMPLE = (
    "groups:\n  - name: mine\n    rules:\n    - alert: answers_too_long\n      expr: "
    "length.mean > 2 * baseline(length.mean)\n      for: 5 steps\n      labels: {severity: "
    'warning}\n      annotations:\n        summary: "Answers have {value} tokens on '
    'average, twice as many as at the beginning."\n# off: [rule_that_nobody_needs]\n'
)


def with_rule(text: str, source: str) -> str:
    """``source``, a document of one rule, within ``text``; at its end where that has no list of groups."""
    if not text.strip():
        return source
    found = _GROUPS.search(text)
    body = source.partition("\n")[2]
    return f"{text[: found.end()]}{body}{text[found.end() :]}" if found else f"{text.rstrip()}\n{source}"


def faults(told: RuleCheckView, text: str) -> Component:
    """Each with its line; without any what would change."""
    if not told.faults:
        return _changes(told)
    lines = text.split("\n")
    shown = [_fault(fault, lines) for fault in told.faults[:FAULTS_MAX]]
    rest = len(told.faults) - len(shown)
    more = html.Li(t("and {count} more", count=rest), className="muted") if rest > 0 else None
    title = t("{faults}: this cannot be put in force.", faults=plural(len(told.faults), "fault"))
    return [notice(title, tone="critical"), html.Ol([*shown, more], className="faults")]


def _fault(fault: RuleFault, lines: Sequence[str]) -> Component:
    if not 1 <= fault.line <= len(lines):
        return html.Li(html.Span(visible(fault.words, 400)))
    at = html.Button(t("Line {line}", line=fault.line), id={"type": "to-line", "line": fault.line}, type="button")
    written = lines[fault.line - 1].strip()
    code = html.Code(visible(written, 160)) if written else None
    return html.Li([at, html.Span(visible(fault.words, 400)), code])


def _changes(told: RuleCheckView) -> Component:
    parts = {"new": told.added, "changed": told.changed, "gone": told.removed}
    if not any(parts.values()):
        return notice(
            t("Sound. It changes no rule."), t("{rules} would be in force.", rules=plural(told.rules, "rule"))
        )
    lines = [
        html.Li([mark(CHANGES[kind]), " ", html.Code(key)])
        for kind, keys in parts.items()
        for key in keys[:FAULTS_MAX]
    ]
    words = t("Sound. {rules} would be in force.", rules=plural(told.rules, "rule"))
    return [notice(words, tone="good"), html.Ul(lines, className="faults")]


def version_list(versions: Sequence[EditedRulesView], prefix: str) -> Component:
    """Each can be brought back into the editor."""
    if not versions:
        return html.P(t("The rules are as they were shipped, with the operator's files."), className="quiet")
    rows = [_version(version, prefix, first=at == 0) for at, version in enumerate(versions)]
    return html.Ol(rows, className="versions")


def _version(version: EditedRulesView, prefix: str, *, first: bool) -> Component:
    link = dcc.Link(
        t("Version {number}", number=version.number), href=f"{prefix}rules/edit?version={version.number}"
    )
    who = [*visible(version.changed_by or t("somebody"), LONGEST_NAME)]
    at = [", ", when(version.changed_at)] if version.changed_at is not None else []
    why = [": ", *visible(version.why, 300)] if version.why else []
    return html.Li(
        [html.B(link), t(" in force. ") if first else " ", html.Span([*who, *at, *why], className="muted")]
    )
