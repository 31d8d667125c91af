"""Rules of one's own over the shipped ones: faults are told as they are typed, then tried, then put in force."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from time import time
from typing import Any

from dash import Dash, Input, Output, State, dcc, html, no_update
from dash.exceptions import PreventUpdate

from rlvitals.contract.rulebook import EditedRulesView
from rlvitals_dashboard import nav
from rlvitals_dashboard.api import Api, ApiError
from rlvitals_dashboard.asking import ask_once
from rlvitals_dashboard.components import Component, notice, panel, visible
from rlvitals_dashboard.deeds import verdict_place
from rlvitals_dashboard.heart import Block, Heart, Query
from rlvitals_dashboard.language import t
from rlvitals_dashboard.live import fingerprint
from rlvitals_dashboard.rule_draft import EXAMPLE, faults, version_list, with_rule
from rlvitals_dashboard.rule_trial import choose_runs, register_trial


async def layout(api: Api, prefix: str, query: Query) -> Component:
    blocks, versions, runs = await asyncio.gather(heart(prefix).draw(api, {}), api.rule_versions(), api.runs())
    base = versions[0].number if versions else 0
    text = await _begin(api, versions, query)
    return html.Main(
        [
            html.Div(
                [html.H1(t("Edit rules")), html.P(t("Yours come on top of the shipped ones."))],
                className="page-head",
            ),
            nav.rule_tabs(prefix, "rules/edit"),
            html.Div(
                [
                    html.Div([_editor(text, _place(query)), html.Div(id="tried")], className="main"),
                    html.Aside(
                        [
                            panel(t("Try it on past runs"), choose_runs(runs, query.get("runs", ""))),
                            blocks["versions"],
                        ]
                    ),
                ],
                className="columns",
            ),
            dcc.Store(id="draft-base", data=base),
            dcc.Store(id="draft-begun", data=text),
            dcc.Store(id="tried-query"),
            verdict_place(),
            blocks["heart"],
        ],
        className="page control rules",
    )


async def _begin(api: Api, versions: Sequence[EditedRulesView], query: Query) -> str:
    """The text in force, an older one, or the one in force with a rule that is to be changed."""
    wanted = query.get("version", "")
    shown = next((v for v in versions if str(v.number) == wanted), versions[0] if versions else None)
    text = shown.text if shown is not None else ""
    if query.get("rule"):
        source = await api.rule_source(query["rule"], query.get("severity", ""))
        if not source.where.startswith("edited:"):
            return with_rule(text, source.text)
    return text


def _place(query: Query) -> str:
    """What a draft is of: each of them is kept by the browser until its text in force is another."""
    return f"draft {query.get('rule', '')}/{query.get('severity', '')}@{query.get('version', '')}"


def _editor(text: str, place: str) -> Component:
    area = dcc.Textarea(
        id="draft",
        value=text,
        placeholder=EXAMPLE,
        spellCheck=False,
        rows=24,
        persistence=place,
        persistence_type="local",
    )
    why = html.Label(
        [t("Why"), dcc.Input(id="draft-why", maxLength=500, autoComplete="off")], className="argument"
    )
    words = t(
        "From the next step on, every run is judged by it, in every process of the service. "
        "Alerts of rules that are gone end. Administrators can; each version is kept and can "
        "be brought back."
    )
    yes = html.Button(t("Yes, put it in force"), id="draft-force", className="button primary")
    force = ask_once(t("Put it in force"), words, html.Div([why, yes]), tone="primary")
    words_above = t("As in a rule file. A rule of the same name and severity takes the shipped one's place.")
    label = html.Label([words_above, area], className="draft")
    kept = html.P(t("This browser keeps what you type here until it is in force."), className="quiet")
    back = html.Button(t("Begin anew"), id="draft-anew", className="button")
    buttons = html.Div([force, back], className="buttons own")
    return panel(t("Rule file"), [label, html.Div(id="draft-faults", role="status"), kept, buttons])


def heart(prefix: str) -> Heart:
    async def look(api: Api, _query: Query) -> Mapping[str, Block]:
        versions = await api.rule_versions()
        make = lambda: panel(t("Versions"), version_list(versions, prefix))  # noqa: E731
        return {"versions": Block(stamp=fingerprint([v.number for v in versions]), make=make)}

    return Heart(key="rule-edit", blocks=("versions",), look=look, pace_s=2.0)


def register(app: Dash, api: Api, prefix: str) -> None:
    heart(prefix).register(app, api)

    _register_check(app, api)
    _register_anew(app)
    _register_force(app, api)
    register_trial(app, api)


def _register_check(app: Dash, api: Api) -> None:
    @app.callback(Output("draft-faults", "children"), Input("draft", "value"), websocket=True)
    async def check(text: str | None) -> Component:
        if not (text or "").strip():
            return html.P(t("Empty: the shipped rules and the operator's files alone."), className="quiet")
        try:
            return faults(await api.check_rules(text or ""), text or "")
        except ApiError as error:
            return notice(error.title, error.detail, tone="critical")


def _register_anew(app: Dash) -> None:
    @app.callback(
        Output("draft", "value"),
        Input("draft-anew", "n_clicks"),
        State("draft-begun", "data"),
        prevent_initial_call=True,
    )
    def anew(clicks: int | None, begun: str | None) -> str:
        if not clicks:
            raise PreventUpdate
        return begun or ""


def _register_force(app: Dash, api: Api) -> None:
    @app.callback(
        Output("verdict", "children", allow_duplicate=True),
        Output("done", "data", allow_duplicate=True),
        Output("draft-base", "data"),
        Input("draft-force", "n_clicks"),
        State("draft", "value"),
        State("draft-base", "data"),
        State("draft-why", "value"),
        running=[(Output("verdict-place", "className"), "at-work", "")],
        prevent_initial_call=True,
    )
    async def force(clicks: int | None, text: str | None, base: int, why: str | None) -> tuple[Any, ...]:
        if not clicks:
            raise PreventUpdate
        try:
            made = await api.edit_rules(text or "", base, (why or "").strip())
        except ApiError as error:
            return notice(error.title, html.Span(visible(error.detail, 600)), tone="critical"), time(), no_update
        done = notice(
            t("Version {number} is in force.", number=made.number),
            t("From the next step of every run on."),
            tone="good",
        )
        return done, time(), made.number
