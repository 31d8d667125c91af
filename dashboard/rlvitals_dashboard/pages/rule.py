"""One rule: what it says and why, how it stands on each run, and a test message about it."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import unquote

from dash import html

from rlvitals_dashboard import nav
from rlvitals_dashboard.api import Api, NotFound
from rlvitals_dashboard.components import Component, mark, panel
from rlvitals_dashboard.deeds import verdict_place
from rlvitals_dashboard.heart import Block, Heart, Query
from rlvitals_dashboard.language import t
from rlvitals_dashboard.live import fingerprint
from rlvitals_dashboard.rule_board import about, rule_deeds, standings_table
from rlvitals_dashboard.theme import SEVERITIES

PACE_S = 1.0


async def layout(api: Api, prefix: str, place: str) -> Component:
    """``place`` is the rule's name and severity."""
    rule, _, severity = place.partition("/")
    blocks = await heart(prefix).draw(api, {"rule": unquote(rule), "severity": severity})
    return html.Main(
        [
            blocks["head"],
            nav.rule_tabs(prefix, ""),
            html.Div(
                [
                    html.Div(blocks["standings"], className="main"),
                    html.Aside([blocks["about"]]),
                ],
                className="columns",
            ),
            verdict_place(),
            blocks["heart"],
        ],
        className="page control rules",
    )


def heart(prefix: str) -> Heart:
    async def look(api: Api, query: Query) -> Mapping[str, Block]:
        name, severity = query.get("rule", ""), query.get("severity", "")
        board = await api.rule_board()
        row = next((r for r in board.rules if r.rule == name and r.severity.value == severity), None)
        if row is None:
            raise NotFound(
                t("Not here"),
                t(
                    "There is no rule {name} of severity {severity} in force.",
                    name=f"{name[:64]!r}",
                    severity=f"{severity[:16]!r}",
                ),
            )
        fixed = fingerprint(row.rule, row.severity, row.expr, row.summary, row.reason, row.where)
        title = html.Div([html.H1(row.rule), mark(SEVERITIES[row.severity])], className="page-head")
        return {
            "head": Block(stamp=fixed, make=lambda: title),
            "about": Block(stamp=fixed, make=lambda: [about(row), rule_deeds(row, prefix)]),
            "standings": Block(
                stamp=fingerprint(row.standings, board.runs),
                make=lambda: panel(t("On each run"), standings_table(row, board.runs, prefix)),
            ),
        }

    return Heart(key="rule", blocks=("head", "about", "standings"), look=look, pace_s=PACE_S)
