"""One command: its way from whoever asked for it down to the ranks, its effect, and its lines in the audit."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from urllib.parse import quote

from dash import dcc, html

from rlvitals.contract.command import CommandState
from rlvitals.contract.view import CommandView, RunView
from rlvitals_dashboard import nav
from rlvitals_dashboard.api import Api
from rlvitals_dashboard.audit_panel import audit_table
from rlvitals_dashboard.command_list import course_list, outcome
from rlvitals_dashboard.command_panel import decision, title
from rlvitals_dashboard.components import Component, fact, mark, named, panel, visible, when
from rlvitals_dashboard.course import course, ranks_of
from rlvitals_dashboard.deeds import verdict_place
from rlvitals_dashboard.effect_panel import effect_panel
from rlvitals_dashboard.heart import Block, Heart, Query
from rlvitals_dashboard.language import t, woven
from rlvitals_dashboard.live import fingerprint
from rlvitals_dashboard.theme import COMMAND_STATES
from rlvitals_dashboard.words import number


async def layout(api: Api, prefix: str, command: str) -> Component:
    blocks = await heart(prefix).draw(api, {"command": command})
    return html.Main(
        [
            blocks["head"],
            nav.tabs(prefix, "control"),
            html.Div(
                [
                    html.Div(
                        [blocks["decision"], blocks["course"], blocks["effect"], blocks["audit"]], className="main"
                    ),
                    html.Aside(blocks["about"]),
                ],
                className="columns",
            ),
            verdict_place(),
            blocks["heart"],
        ],
        className="page control",
    )


def heart(prefix: str) -> Heart:
    async def look(api: Api, query: Query) -> Mapping[str, Block]:
        command = await api.command(query.get("command", ""))
        run, (lines, _) = await asyncio.gather(api.run(command.run), api.audit({"command": command.id}))
        effect = await api.effect(command.id) if command.state is CommandState.APPLIED else None
        stations = course(command, ranks_of(run.config))
        waits = command.state is CommandState.PROPOSED
        return {
            "head": Block(stamp=fingerprint(command, run.name), make=lambda: _head(command, run, prefix)),
            "decision": Block(
                stamp=fingerprint(command if waits else None),
                make=lambda: panel(t("Waits for your decision"), decision(command, run)) if waits else None,
            ),
            "course": Block(stamp=fingerprint(stations), make=lambda: panel(t("Progress"), course_list(stations))),
            "effect": Block(
                stamp=fingerprint(effect),
                make=lambda: panel(t("Its effect"), effect_panel(effect)) if effect else None,
            ),
            "about": Block(stamp=fingerprint(command), make=lambda: panel(t("Details"), _about(command))),
            "audit": Block(
                stamp=fingerprint(lines), make=lambda: panel(t("In the audit"), audit_table(lines, prefix))
            ),
        }

    return Heart(key="command", blocks=("head", "decision", "course", "effect", "about", "audit"), look=look)


def _head(command: CommandView, run: RunView, prefix: str) -> Component:
    look = COMMAND_STATES[command.state]
    where = dcc.Link(named(run), href=f"{prefix}run/{quote(run.id, safe='')}", className="whose")
    return html.Div(
        [
            html.H1([*title(command), *outcome(command)]),
            html.P(woven("{state} on {run}", state=mark(look), run=where)),
        ],
        className="page-head",
    )


def _about(command: CommandView) -> Component:
    bounds = command.bounds
    facts = [
        fact(t("Asked by"), html.Span(visible(command.who or "–", 96))),
        fact(t("Value"), number(command.argument) if command.argument is not None else t("none")),
        fact(
            t("Allowed"), t("{low} to {high}", low=number(bounds.low), high=number(bounds.high)) if bounds else "–"
        ),
        fact(
            t("Before"),
            number(command.before) if command.before is not None else "–",
            t("read back from the trainer"),
        ),
        fact(
            t("After"),
            number(command.after) if command.after is not None else "–",
            t("read back from the trainer"),
        ),
    ]
    if command.done_at is None:
        facts.append(fact(t("Expires"), when(command.expires_at)))
    words = [
        html.P([html.B(f"{label}: "), *visible(text, 600)])
        for label, text in ((t("Why"), command.why), (t("Reason"), command.reason), (t("Rule"), command.rule))
        if text
    ]
    return [html.Dl(facts, className="facts"), *words]
