"""Rules of one's own over the shipped ones: faults are told as they are typed, then tried, then put in force."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from dash import Dash, dcc, html

from rlvitals.contract.rulebook import EditedRulesView
from rlvitals_dashboard import nav
from rlvitals_dashboard.api import Api
from rlvitals_dashboard.components import Component, panel
from rlvitals_dashboard.deeds import verdict_place
from rlvitals_dashboard.heart import Block, Heart, Query
from rlvitals_dashboard.language import t
from rlvitals_dashboard.live import fingerprint
from rlvitals_dashboard.rule_draft import version_list, with_rule
from rlvitals_dashboard.rule_editor import editor, place_of, register_editor
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
                    html.Div([editor(text, place_of(query)), html.Div(id="tried")], className="main"),
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


def heart(prefix: str) -> Heart:
    async def look(api: Api, _query: Query) -> Mapping[str, Block]:
        versions = await api.rule_versions()
        make = lambda: panel(t("Versions"), version_list(versions, prefix))  # noqa: E731
        return {"versions": Block(stamp=fingerprint([v.number for v in versions]), make=make)}

    return Heart(key="rule-edit", blocks=("versions",), look=look, pace_s=2.0)


def register(app: Dash, api: Api, prefix: str) -> None:
    heart(prefix).register(app, api)
    register_editor(app, api)
    register_trial(app, api)
