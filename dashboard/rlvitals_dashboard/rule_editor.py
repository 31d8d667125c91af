"""Where rules of one's own are written: the text, its faults as it is typed, the deed that puts it in force."""

from __future__ import annotations

from time import time
from typing import Any

from dash import Dash, Input, Output, State, dcc, html, no_update
from dash.exceptions import PreventUpdate

from rlvitals_dashboard.api import Api, ApiError
from rlvitals_dashboard.asking import ask_once
from rlvitals_dashboard.components import Component, notice, panel, visible
from rlvitals_dashboard.heart import Query
from rlvitals_dashboard.language import t
from rlvitals_dashboard.rule_draft import EXAMPLE, faults


def place_of(query: Query) -> str:
    """What a draft is of: each of them is kept by the browser until its text in force is another."""
    return f"draft {query.get('rule', '')}/{query.get('severity', '')}@{query.get('version', '')}"


def editor(text: str, place: str) -> Component:
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


def register_editor(app: Dash, api: Api) -> None:
    _register_check(app, api)
    _register_anew(app)
    _register_force(app, api)


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
