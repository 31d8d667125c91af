"""All runs: the worst first, found, sorted, grouped and handled together; or how to attach the first one."""

from __future__ import annotations

import time
from typing import Any

from dash import ClientsideFunction, Dash, Input, Output, State, dcc, html

from rlvitals_dashboard import runs_deeds
from rlvitals_dashboard.api import Api, ApiError
from rlvitals_dashboard.components import Component
from rlvitals_dashboard.deeds import verdict_place
from rlvitals_dashboard.heart import Query
from rlvitals_dashboard.language import t
from rlvitals_dashboard.live import WATCH_MS, after_trouble, next_change
from rlvitals_dashboard.runs_bar import runs_bar
from rlvitals_dashboard.runs_beat import Shown, full_look, look
from rlvitals_dashboard.runs_bulk import bulk_bar
from rlvitals_dashboard.runs_empty import empty_runs
from rlvitals_dashboard.runs_table import runs_table
from rlvitals_dashboard.runs_view import RunsView


async def layout(api: Api, prefix: str, query: Query) -> Component:
    view = RunsView.read(query)
    choices = await api.run_choices()
    found, more = await api.listed_runs(view.asked())
    rows = full_look(found, more, choices, view, {}, prefix)
    return html.Main(
        [
            html.Div(
                [html.H1(t("Runs")), html.P(rows["summary"], id="runs-summary", role="status")],
                className="page-head",
            ),
            runs_bar(view, choices),
            runs_table(rows),
            empty_runs(),
            html.Div([verdict_place(), bulk_bar(prefix)], className="runs-dock"),
            html.Div(
                [
                    dcc.Store(id="bulk-deed"),
                    dcc.Store(id="runs-pulse"),
                    dcc.Store(id="runs-beat"),
                    dcc.Interval(id="runs-watch", interval=WATCH_MS),
                ],
                hidden=True,
            ),
        ],
        className="page runs",
    )


def register(app: Dash, api: Api, prefix: str) -> None:
    runs_deeds.register(app, api)

    @app.callback(
        Output("runs-beat", "data"),
        Input("runs-pulse", "data"),
        State("runs-list", "id"),
        prevent_initial_call=True,
        websocket=True,
        persistent=True,
    )
    async def live(data: object, _id: str) -> dict[str, Any]:
        """A full look is wanted now; between two of them it waits for news."""
        shown = Shown.read(data)
        try:
            began = time.monotonic()
            version = shown.version
            if not shown.full:
                version = (await next_change(api, None, shown.version)).version
            told = await look(api, shown, prefix)
        except ApiError as error:
            return {"version": shown.version, "trouble": await after_trouble(error)}
        return {**told, "version": version, "took_s": time.monotonic() - began}


def register_browser(register: Any) -> None:
    """What the browser does by itself; the functions are in assets/runs.js."""

    def does(name: str, *wires: Any) -> None:
        register(ClientsideFunction("vitalsRuns", name), *wires)

    does("open", Output("runs-list", "data-drawn"), Input("runs-rows", "data"))
    does("beat", Input("runs-beat", "data"))
    does("watch", Input("runs-watch", "n_intervals"))
    does("done", Input("done", "data"))
    runs_deeds.register_browser(register)
