"""How the rules in force stand, as people see it: a line a rule over all runs, and one rule on each run. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote, urlencode

from dash import dcc, html

from rlvitals.contract.alert import Truth
from rlvitals.contract.command import CommandKind
from rlvitals.contract.rulebook import BoardRun, RuleBoardRow, RuleBoardView, StandingView
from rlvitals_dashboard.alert_panel import runbook_link
from rlvitals_dashboard.asking import ask_once, do, say, subject_of
from rlvitals_dashboard.command_panel import KINDS
from rlvitals_dashboard.components import LONGEST_NAME, Component, aria, mark, panel, visible
from rlvitals_dashboard.language import phrase, t
from rlvitals_dashboard.line_table import line_table
from rlvitals_dashboard.theme import SEVERITIES, STANDINGS
from rlvitals_dashboard.words import FAMILIES, number, plural

HOLDS, QUIET, UNKNOWN, DORMANT, NOWHERE = "holds", "quiet", "unknown", "dormant", "nowhere"
HOLD_NOW = phrase("holding now")
NAMED_MAX = 3
"""Runs that a line names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """``state`` is the gravest of any run: what holds, what is quiet, what cannot tell, what cannot run."""

    row: RuleBoardRow
    state: str
    counts: Mapping[str, int]
    holding: tuple[str, ...]
    says: str

    @property
    def shown(self) -> tuple[object, ...]:
        """What of it is on the page, values of quiet rules aside: these move with every step."""
        return (self.row.rule, self.row.severity, self.row.expr, self.state, self.counts, self.holding, self.says)


def lines_of(board: RuleBoardView, state: str = "", words: str = "") -> list[Line]:
    """In the order of the groups; only those of a state, and with ``words`` in what a rule says of itself."""
    lines = [_line(row, len(board.runs) == 1) for row in board.rules]
    wanted = words.casefold()
    return [one for one in lines if (not state or one.state == state) and wanted in _text(one.row)]


def _text(row: RuleBoardRow) -> str:
    return f"{row.rule} {row.group} {row.expr} {row.summary} {' '.join(row.metrics)}".casefold()


def state_of(standing: StandingView) -> str:
    if standing.dormant:
        return DORMANT
    return {Truth.ACTIVE: HOLDS, Truth.INACTIVE: QUIET, Truth.UNKNOWN: UNKNOWN}[standing.truth]


def _line(row: RuleBoardRow, alone: bool) -> Line:
    states = [state_of(standing) for standing in row.standings]
    counts = Counter(states)
    state = next((s for s in (HOLDS, QUIET, UNKNOWN, DORMANT) if counts[s]), NOWHERE)
    holding = tuple(s.run for s, its in zip(row.standings, states, strict=True) if its == HOLDS)
    if state in (UNKNOWN, DORMANT):
        reasons = Counter(s.reason for s in row.standings if s.reason)
        says = reasons.most_common(1)[0][0] if reasons else ""
    else:
        loud = next((s for s, its in zip(row.standings, states, strict=True) if its == HOLDS or alone), None)
        says = "" if loud is None else _value(loud)
    return Line(row=row, state=state, counts=dict(counts), holding=holding, says=says)


def _value(standing: StandingView) -> str:
    if standing.value is None and standing.threshold is None:
        return ""
    if standing.threshold is None:
        return number(standing.value)
    return f"{number(standing.value)} ({t('threshold {limit}', limit=number(standing.threshold))})"


def summary(board: RuleBoardView) -> str:
    over = plural(len(board.runs), "run") if board.runs else t("no run")
    more = t(" and {count} more that are not shown", count=board.left_out) if board.left_out else ""
    return t(
        "{rules} in force, looked at on {over}{more}", rules=plural(len(board.rules), "rule"), over=over, more=more
    )


def chips(board: RuleBoardView, at: Callable[[str], str], here: str) -> Component:
    """The states with how many rules are in each; every one is an address."""
    counts = Counter(line.state for line in lines_of(board))
    every = [("", t("All {count}", count=len(board.rules)))]
    each = [(state, f"{STANDINGS[state].said} {counts[state]}") for state in STANDINGS if counts[state]]
    links = [
        dcc.Link(words, href=at(state), className="here" if state == here else "")
        for state, words in (*every, *each)
    ]
    return html.Nav(links, className="tabs", **aria(label=t("States")))


def board_panels(lines: Sequence[Line], runs: Sequence[BoardRun], prefix: str) -> Component:
    """What holds, then a table for each group of rules."""
    if not lines:
        return panel(
            t("Rules"), html.P(t("No rule fits. Take words or the state out of the filter."), className="quiet")
        )
    groups: dict[str, list[Line]] = {HOLD_NOW: [line for line in lines if line.state == HOLDS]}
    for line in lines:
        if line.state != HOLDS:
            groups.setdefault(line.row.group, []).append(line)
    names = {run.id: run.name or run.id for run in runs}
    return [
        panel(_heading(group), _table(_heading(group), some, names, prefix), count=str(len(some)))
        for group, some in groups.items()
        if some
    ]


def _heading(group: str) -> str:
    """A group of shipped rules is named as the family of metrics that it watches."""
    if group == HOLD_NOW:
        return t(HOLD_NOW).capitalize()
    known = next((word for family, word in FAMILIES.items() if family.value == group), "")
    return t(known) if known else group.replace("_", " ").capitalize()[:LONGEST_NAME]


def _table(label: str, lines: Sequence[Line], names: Mapping[str, str], prefix: str) -> Component:
    columns = (t("Rule"), t("Severity"), t("State"), t("Detail"))
    return line_table(label, columns, [_row(line, names, prefix) for line in lines])


def _row(line: Line, names: Mapping[str, str], prefix: str) -> Component:
    row = line.row
    return html.Tr(
        [
            html.Td(dcc.Link(row.rule, href=rule_page(prefix, row.rule, row.severity.value)), className="rule"),
            html.Td(mark(SEVERITIES[row.severity])),
            html.Td(_stands(line, names, prefix)),
            html.Td(visible(line.says or row.summary, 300), className="detail"),
        ]
    )


def _stands(line: Line, names: Mapping[str, str], prefix: str) -> list[Component]:
    of = (
        t(" on {some} of {count}", some=line.counts[HOLDS], count=len(names))
        if line.state == HOLDS and len(names) > 1
        else ""
    )
    parts: list[Component] = [mark(STANDINGS[line.state], words=f"{STANDINGS[line.state].said}{of}")]
    parts += [_run_link(run, names[run], prefix) for run in line.holding[:NAMED_MAX] if len(names) > 1]
    return parts


def _run_link(run: str, name: str, prefix: str) -> Component:
    return html.Div(dcc.Link(visible(name, 40), href=f"{prefix}run/{quote(run, safe='')}"), className="muted")


def rule_page(prefix: str, rule: str, severity: str) -> str:
    return f"{prefix}rules/rule/{quote(rule, safe='')}/{severity}"


# one rule


def about(row: RuleBoardRow) -> Component:
    """What it says, when it fires and why this number; where it is written."""
    facts = [
        (t("What it says"), html.P(visible(row.summary, 800))),
        (t("Fires when"), html.Pre(visible(_bare(row.expr), 2000), className="code")),
        (t("Why this number"), html.P(visible(row.reason, 800)) if row.reason else None),
        (t("What it proposes"), html.P(t(KINDS[CommandKind(row.acts)])) if row.acts else None),
        (t("What to check"), runbook_link(f"docs/runbooks/{row.rule}.md") or None),
        (t("Written in"), html.P(html.Code(visible(row.where, 300)))),
    ]
    told = [part for name, value in facts if value is not None for part in (html.Dt(name), html.Dd(value))]
    return panel(t("The rule"), html.Dl(told, className="told"))


def _bare(expr: str) -> str:
    """Without the brackets around one comparison."""
    inner = expr[1:-1]
    return inner if expr[:1] == "(" and expr[-1:] == ")" and "(" not in inner and ")" not in inner else expr


def standings_table(row: RuleBoardRow, runs: Sequence[BoardRun], prefix: str) -> Component:
    """How it stands on each run; what holds comes first."""
    if not runs:
        words = t("No run is going on. Choose a past one on the page of all rules, or try the rule on some.")
        return html.P(words, className="quiet")
    order = list(STANDINGS)
    pairs = sorted(zip(runs, row.standings, strict=True), key=lambda pair: order.index(state_of(pair[1])))
    columns = (t("Run"), t("State"), t("Value"), t("Limit"), t("Why"))
    return line_table(t("On each run"), columns, [_standing(run, standing, prefix) for run, standing in pairs])


def _standing(run: BoardRun, standing: StandingView, prefix: str) -> Component:
    link = dcc.Link(visible(run.name or run.id, LONGEST_NAME), href=f"{prefix}run/{quote(run.id, safe='')}")
    return html.Tr(
        [
            html.Td(link),
            html.Td(mark(STANDINGS[state_of(standing)])),
            html.Td("–" if standing.value is None else number(standing.value)),
            html.Td("–" if standing.threshold is None else number(standing.threshold)),
            html.Td(visible(standing.reason, 300), className="detail"),
        ]
    )


def rule_deeds(row: RuleBoardRow, prefix: str) -> Component:
    way = f"{prefix}rules/edit?{urlencode({'rule': row.rule, 'severity': row.severity.value})}"
    subject = subject_of(row.rule, row.severity.value)
    words = t(
        "A message that says that it is a test goes at once to every channel that would hear "
        "of this rule. No alert is made. With a run only to those that listen to that run."
    )
    act = html.Div(
        [
            say("test-rule", subject, "run", t("As if on run"), holder=t("its id; empty: any")),
            do(t("Yes, send the test"), "test-rule", subject),
        ]
    )
    fire = ask_once(t("Test-fire"), words, act)
    return html.Div([dcc.Link(t("Edit and try it"), href=way, className="button"), fire], className="buttons own")
