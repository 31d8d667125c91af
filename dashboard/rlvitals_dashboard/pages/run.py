"""One run: its verdict, what waits for a decision, its alerts, and its charts, all live.

`layout` is the page as it is asked for; `draw` makes the charts anew (first load, fold, theme, new metric); `live`
is the heart that appends what is new. What a person does is in `deeds`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dash import ALL, Dash, Input, Output, State, dcc, html, no_update
from dash.exceptions import PreventUpdate

from rlvitals_dashboard import nav
from rlvitals_dashboard.api import Api, ApiError, SignInNeeded
from rlvitals_dashboard.components import Component, data, notice
from rlvitals_dashboard.deeds import verdict_place
from rlvitals_dashboard.language import t
from rlvitals_dashboard.live import WATCH_MS, Pulse, after_trouble, next_change, prints_place
from rlvitals_dashboard.nav import PREFIX
from rlvitals_dashboard.run_beat import answer, beat_of, fresh_points
from rlvitals_dashboard.run_beside import register_beside
from rlvitals_dashboard.run_drawing import draw_run, fetch_ahead
from rlvitals_dashboard.run_snapshot import BESIDE, PARTS, Snapshot, of_parts
from rlvitals_dashboard.run_tools import scrubber, search_box
from rlvitals_dashboard.run_view import Glance, View


async def layout(api: Api, run: str, query: Mapping[str, str]) -> Component:
    view = View.read(dict(query) | {"run": run})
    version = (await api.changes(run, 0, 0)).version
    now = await Snapshot.share(api, view, version)
    fetch_ahead(api, view, now, version)
    part = {name: html.Div(now.part(name), id=f"run-{name}") for name in PARTS}
    tools = html.Div([search_box(view), html.Div(id="tools", className="choices")], className="tools")
    drawn = [
        tools,
        scrubber(),
        html.Div(id="families"),
        html.Div(id="heats"),
        html.Div(id="step-texts"),
        part["texts"],
    ]
    beside = html.Aside([part["decisions"], *(part[name] for name in BESIDE)])
    return html.Main(
        [
            part["head"],
            part["health"],
            nav.run_tabs(PREFIX, run, "Charts"),
            part["hooks"],
            html.Div([beside, html.Div(drawn, className="main")], className="columns"),
            verdict_place(),
            dcc.Store(id="view", data=view.data()),
            dcc.Store(id="glance", data=Glance.read(query).data()),
            prints_place("run", of_parts(now.prints(view))),
            dcc.Store(id="drawn"),
            dcc.Store(id="pulse"),
            dcc.Store(id="beat"),
            dcc.Store(id="tails"),
            dcc.Store(id="redraw", data=0),
            dcc.Interval(id="watch", interval=WATCH_MS),
            dcc.Store(id="heat-ask"),
        ],
        className="page run",
        **data(run=now.run.name or run),
    )


def register(app: Dash, api: Api) -> None:
    """All callbacks of the page. Each is short: read, ask, draw."""
    _register_draw(app, api)
    register_beside(app, api)
    _register_live(app, api)


def _register_draw(app: Dash, api: Api) -> None:
    """Where only other steps are to be seen, the browser's own script asks `chart_route` for them."""

    @app.callback(
        Output("families", "children"),
        Output("tools", "children"),
        Output("drawn", "data"),
        Input("theme", "data"),
        Input("redraw", "data"),
        State("view", "data"),
    )
    async def draw(theme: str, _redraw: int, data: Mapping[str, Any]) -> tuple[Any, ...]:
        try:
            made = await draw_run(api, View.read(data), theme)
        except ApiError as error:
            return notice(error.title, error.detail, tone="warning"), "", no_update
        return made.families, made.tools, made.pulse


def _register_live(app: Dash, api: Api) -> None:
    """Its outputs are no inputs of `draw`: Dash would hold a drawing back until this long wait is over. A beat
    that finds that the charts must be drawn anew says so, and the browser's own script asks for it."""

    @app.callback(
        *(Output(f"run-{name}", "children") for name in (*PARTS, "prints")),
        Output("tails", "data"),
        Output({"type": "now", "metric": ALL}, "children"),
        Output("beat", "data"),
        Input("pulse", "data"),
        State("view", "data"),
        State("glance", "data"),
        State({"type": "chart", "metric": ALL}, "id"),
        websocket=True,
        persistent=True,
        prevent_initial_call=True,
    )
    async def live(
        data: object,
        view_data: Mapping[str, Any],
        glance_data: Mapping[str, Any],
        ids: Sequence[Mapping[str, str]],
    ) -> tuple[Any, ...]:
        pulse, view, glance = Pulse.read(data), View.read(view_data), Glance.read(glance_data)
        if pulse is None:
            raise PreventUpdate
        charts = [i["metric"] for i in ids]
        try:
            change = await next_change(api, view.run, pulse.version)
            now = await Snapshot.share(api, view, change.version)
            fresh = await fresh_points(api, view, pulse, change, charts, glance)
        except SignInNeeded as error:
            head = notice(t("Sign in to go on"), str(error), tone="warning")
            return answer(charts, prints={**pulse.prints, "head": 0}, head=head)
        except ApiError as error:
            return answer(charts, beat=pulse.data(trouble=await after_trouble(error)))
        return beat_of(pulse, change, now, view, fresh, charts, glance)
