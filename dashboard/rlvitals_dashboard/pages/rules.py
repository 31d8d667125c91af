"""Every rule in force, and how it stands on the runs that are going on, or on one."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode

from dash import dcc, html

from rlvitals_dashboard import nav
from rlvitals_dashboard.api import Api
from rlvitals_dashboard.components import Component
from rlvitals_dashboard.heart import Block, Heart, Query
from rlvitals_dashboard.language import t
from rlvitals_dashboard.live import fingerprint
from rlvitals_dashboard.rule_board import board_panels, chips, lines_of, summary

ASKED = ("run", "q", "state")
LONGEST_FILTER = 128
PACE_S = 2.0


async def layout(api: Api, prefix: str, query: Query) -> Component:
    asked = {name: query[name][:LONGEST_FILTER] for name in ASKED if query.get(name)}
    blocks = await heart(prefix).draw(api, asked)
    runs = await api.runs()
    known = html.Datalist([html.Option(run.name or run.id, value=run.id) for run in runs], id="rule-runs")
    return html.Main(
        [
            html.Div([html.H1(t("Rules")), html.P(blocks["summary"])], className="page-head"),
            nav.rule_tabs(prefix, "rules"),
            html.Div([_filter(prefix, asked), known], className="filters"),
            blocks["states"],
            html.Div(blocks["board"], className="main"),
            blocks["heart"],
        ],
        className="page control rules",
    )


def _filter(prefix: str, asked: Query) -> Component:
    """A form as the web knows it: the answer is a page with an address of its own."""
    run = dcc.Input(
        name="run", value=asked.get("run", ""), list="rule-runs", placeholder=t("all that go on"), maxLength=128
    )
    words = dcc.Input(
        name="q", value=asked.get("q", ""), type="search", placeholder=t("name, metric, words"), maxLength=128
    )
    show = html.Button(t("Show"), type="submit", className="button")
    fields = [html.Label([t("Run"), run]), html.Label([t("Find"), words]), show]
    return html.Form(fields, action=f"{prefix}rules", method="GET", className="filter")


def heart(prefix: str) -> Heart:
    async def look(api: Api, query: Query) -> Mapping[str, Block]:
        run, state, words = (query.get(name, "") for name in ("run", "state", "q"))
        board = await api.rule_board(run)
        lines = lines_of(board, state, words)
        shown = fingerprint([line.shown for line in lines])

        def at(other: str) -> str:
            wanted = {"run": run, "q": words, "state": other}
            tail = urlencode({name: value for name, value in wanted.items() if value})
            return f"{prefix}rules{'?' if tail else ''}{tail}"

        return {
            "summary": Block(stamp=fingerprint(summary(board)), make=lambda: summary(board)),
            "states": Block(
                stamp=fingerprint([line.state for line in lines_of(board)]), make=lambda: chips(board, at, state)
            ),
            "board": Block(stamp=shown, make=lambda: board_panels(lines, board.runs, prefix)),
        }

    return Heart(key="rules", blocks=("summary", "states", "board"), look=look, pace_s=PACE_S)
