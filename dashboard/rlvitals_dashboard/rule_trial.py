"""Rules tried on past runs before they are in force: which runs, and what they say before and after."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dash import ALL, Dash, Input, Output, State, ctx, dcc, html, no_update
from dash.exceptions import PreventUpdate

from rlvitals.contract.alert import Severity
from rlvitals.contract.rulebook import BacktestView, TriedRule
from rlvitals.contract.view import RunView
from rlvitals_dashboard.api import Api, ApiError
from rlvitals_dashboard.components import Component, folded, mark, named, notice, panel, visible
from rlvitals_dashboard.language import t, woven
from rlvitals_dashboard.line_table import line_table
from rlvitals_dashboard.theme import CHANGES, SEVERITIES
from rlvitals_dashboard.words import number, plural

RUNS_MAX, OFFERED_MAX = 50, 12
STEPS_MAX = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One alert of one run: the steps at which it fires under the rules in force and under the draft."""

    run: str
    alert: str
    severity: Severity
    before: tuple[int, ...]
    after: tuple[int, ...]

    @property
    def kind(self) -> str:
        if self.before == self.after:
            return "same"
        return "moved" if self.before and self.after else "new" if self.after else "gone"


def outcomes(told: BacktestView) -> list[Outcome]:
    """What differs first, then what stays."""
    differs = [
        Outcome(run=d.run, alert=d.alert, severity=d.severity, before=d.theirs, after=d.ours)
        for d in told.differences
    ]
    known = {(one.run, one.alert, one.severity) for one in differs}
    steps: dict[tuple[str, str, Severity], tuple[int, ...]] = {}
    for run in told.runs:
        for alert in run.alerts:
            key = (run.run, alert.alert, alert.severity)
            steps[key] = (*steps.get(key, ()), alert.step)
    same = [
        Outcome(run=run, alert=alert, severity=severity, before=at, after=at)
        for (run, alert, severity), at in steps.items()
        if (run, alert, severity) not in known
    ]
    return differs + same


def tried(told: BacktestView, names: Mapping[str, str]) -> Component:
    """Before and after, over all chosen runs."""
    found = outcomes(told)
    kinds = Counter(one.kind for one in found)
    steps = sum(run.steps for run in told.runs)
    said = ", ".join(f"{kinds[kind]} {CHANGES[kind].said.lower()}" for kind in CHANGES if kinds[kind])
    over = t("Over {runs} and {steps}", runs=plural(len(told.runs), "run"), steps=plural(steps, "step"))
    head = (
        t("{over}: alerts {said}.", over=over, said=said)
        if said
        else t("{over}: no alert, before or after.", over=over)
    )
    differs = [one for one in found if one.kind != "same"]
    same = [one for one in found if one.kind == "same"]
    body: list[Component] = [html.P(head)]
    if differs:
        body.append(_table(differs, names))
    if same:
        body.append(
            folded(
                t("{alerts} as before", alerts=plural(len(same), "alert")),
                _table(same, names),
                is_open=not differs,
            )
        )
    return [panel(t("Before and after"), body), _record(told)]


def _table(found: Sequence[Outcome], names: Mapping[str, str]) -> Component:
    columns = (t("Run"), t("Alert"), t("Severity"), t("In force now"), t("With this text"), t("Change"))
    rows = [
        html.Tr(
            [
                html.Td(visible(names.get(one.run, one.run), 60), className="detail"),
                html.Td(html.Code(one.alert)),
                html.Td(mark(SEVERITIES[one.severity])),
                html.Td(_steps(one.before)),
                html.Td(_steps(one.after)),
                html.Td(mark(CHANGES[one.kind])),
            ]
        )
        for one in found
    ]
    return line_table(t("Before and after"), columns, rows)


def _steps(steps: Sequence[int]) -> str:
    if not steps:
        return t("quiet")
    shown = ", ".join(f"{step:,}" for step in steps[:STEPS_MAX])
    rest = len(steps) - STEPS_MAX
    told = t("step {steps}", steps=shown) if len(steps) == 1 else t("steps {steps}", steps=shown)
    return told + (t(" and {count} more", count=rest) if rest > 0 else "")


def _record(told: BacktestView) -> Component:
    """How right it is: only where somebody said which runs went bad."""
    if not told.bad_runs:
        hint = t("Say which runs went bad, and from which step, to see how often each rule is right.")
        return html.P(hint, className="quiet")
    heard = told.bad_runs - len(told.quiet)
    named = t("{heard} of {runs} would have been named", heard=heard, runs=plural(told.bad_runs, "bad run"))
    false = t(
        "{alarms} on {steps}",
        alarms=plural(told.false_alarms, "false alarm"),
        steps=plural(told.healthy_steps, "healthy step"),
    )
    words = t(
        "{named}; {false}, {rate} per 1,000.",
        named=named,
        false=false,
        rate=number(told.false_per_thousand),
    )
    title, names = t("How right it is with this text"), (t("Rule"), t("Severity"), t("Fired"), t("Right"))
    table = line_table(title, names, [_rule(rule) for rule in told.rules]) if told.rules else None
    return panel(title, [html.P(words), table])


def _rule(rule: TriedRule) -> Component:
    right = f"{rule.right} ({number(100 * rule.precision)} %)"
    return html.Tr(
        [
            html.Td(html.Code(rule.alert)),
            html.Td(mark(SEVERITIES[rule.severity])),
            html.Td(plural(rule.fired, "time")),
            html.Td(right),
        ]
    )


def choose_runs(runs: Sequence[RunView], asked: str) -> Component:
    """A line that the address says too, and the newest runs one press away."""
    field = dcc.Input(id="tried-runs", value=asked, placeholder=t("ids, with commas between"), maxLength=4000)
    adds = [
        html.Button(["+ ", *named(run)], id={"type": "add-run", "run": run.id}, className="button quiet")
        for run in runs[:OFFERED_MAX]
    ]
    none = html.P(t("No run has reported yet. Import a log to have one."), className="quiet") if not adds else None
    return [
        html.Label([t("Runs"), field], className="whose-run"),
        html.Div(adds, className="run-choice"),
        none,
        dcc.Store(id="tried-names", data={run.id: run.name or run.id for run in runs}),
        html.Div(id="tried-since", className="tried-runs"),
        html.Button(
            [html.Span(t("Try it"), className="rest"), html.Span(t("Trying …"), className="busy")],
            id="try",
            className="button",
        ),
    ]


def chosen_of(text: str) -> dict[str, int | None]:
    """``a,b@120`` of the address: b went bad at step 120."""
    found: dict[str, int | None] = {}
    for part in text.split(",")[:RUNS_MAX]:
        run, _, step = part.strip().partition("@")
        if run:
            found[run] = int(step) if step.isdecimal() and len(step) < 16 else None
    return found


def register_trial(app: Dash, api: Api) -> None:
    @app.callback(
        Output("tried-runs", "value"),
        Input({"type": "add-run", "run": ALL}, "n_clicks"),
        State("tried-runs", "value"),
        prevent_initial_call=True,
    )
    def add(_clicks: object, text: str | None) -> str:
        if not isinstance(ctx.triggered_id, Mapping) or not ctx.triggered[0]["value"]:
            raise PreventUpdate
        run, known = ctx.triggered_id["run"], chosen_of(text or "")
        return text or "" if run in known else ",".join([*filter(None, [text]), run])

    @app.callback(Output("tried-since", "children"), Input("tried-runs", "value"))
    def since(text: str | None) -> Component:
        chosen = chosen_of(text or "")
        if not chosen:
            return html.P(
                t("Choose runs, then say which of them went bad, and from which step."), className="quiet"
            )
        return [_since(run, step) for run, step in chosen.items()]

    @app.callback(
        Output("tried", "children"),
        Output("tried-query", "data"),
        Input("try", "n_clicks"),
        State("draft", "value"),
        State("tried-names", "data"),
        State({"type": "since", "run": ALL}, "value"),
        State({"type": "since", "run": ALL}, "id"),
        running=[(Output("try", "disabled"), True, False)],
        prevent_initial_call=True,
    )
    async def attempt(
        clicks: int | None,
        text: str | None,
        names: Mapping[str, str] | None,
        steps: Sequence[float | None],
        ids: Sequence[Mapping[str, str]],
    ) -> tuple[Any, ...]:
        if not clicks:
            raise PreventUpdate
        bad = {one["run"]: None if step is None else int(step) for one, step in zip(ids, steps, strict=True)}
        if not bad:
            return notice(t("On which runs?"), t("Choose at least one."), tone="warning"), no_update
        asked = {"runs": ",".join(run if step is None else f"{run}@{step}" for run, step in bad.items())}
        try:
            return tried(await api.backtest(bad, text or ""), names or {}), asked
        except ApiError as error:
            return notice(error.title, html.Span(visible(error.detail, 600)), tone="critical"), asked


def _since(run: str, step: int | None) -> Component:
    field = dcc.Input(
        id={"type": "since", "run": run}, type="number", value=step, min=0, step=1, placeholder=t("it was well")
    )
    return html.Label([html.Span(woven("{run}: went bad at step", run=visible(run, 60))), field])
