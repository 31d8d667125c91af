"""One run: its verdict, what waits for a decision, its alerts, and its charts, all live.

`layout` is the page as it is asked for; `draw` draws the charts whole (first load, zoom, fold, theme, new
metric); `live` is the heart that appends what is new. What a person does is in `deeds`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dash import ALL, Dash, Input, Output, State, dcc, html, no_update
from dash.exceptions import PreventUpdate

from rlvitals.contract.view import SeriesView
from rlvitals_dashboard import figures, nav
from rlvitals_dashboard.api import Api, ApiError, SignInNeeded
from rlvitals_dashboard.charts import Drawing, families
from rlvitals_dashboard.components import Component, attempt_choices, notice
from rlvitals_dashboard.deeds import verdict_place
from rlvitals_dashboard.live import WATCH_MS, Pulse, after_trouble, next_change
from rlvitals_dashboard.nav import PREFIX
from rlvitals_dashboard.run_beat import answer, beat_of, fresh_points
from rlvitals_dashboard.run_snapshot import BESIDE, PARTS, Snapshot
from rlvitals_dashboard.run_view import View
from rlvitals_dashboard.theme import pick


async def layout(api: Api, run: str, query: Mapping[str, str]) -> Component:
    view = View.read(dict(query) | {"run": run})
    now = await Snapshot.take(api, view)
    part = {name: html.Div(now.part(name), id=f"run-{name}") for name in PARTS}
    attempts = dcc.Dropdown(
        id="attempt", options=attempt_choices(now.run), value=view.attempt, clearable=False, searchable=False
    )
    tools = html.Div(
        [
            html.Div(attempts, className="attempts", hidden=len(now.run.attempts) < 2),
            html.Div(id="zoom", className="zoom"),
        ],
        className="tools",
    )
    return html.Main(
        [
            part["head"],
            nav.run_tabs(PREFIX, run, "Charts"),
            part["hooks"],
            html.Div(
                [
                    html.Aside([part["decisions"], *(part[name] for name in BESIDE)]),
                    html.Div([tools, html.Div(id="families"), part["texts"]], className="main"),
                ],
                className="columns",
            ),
            verdict_place(),
            dcc.Store(id="view", data=view.data()),
            dcc.Store(id="pulse"),
            dcc.Store(id="beat"),
            dcc.Store(id="redraw", data=0),
            dcc.Interval(id="watch", interval=WATCH_MS),
        ],
        className="page run",
    )


def register(app: Dash, api: Api) -> None:
    """All callbacks of the page. Each is short: read, ask, draw."""
    _register_draw(app, api)
    _register_live(app, api)


def _register_draw(app: Dash, api: Api) -> None:
    @app.callback(
        Output("families", "children"),
        Output("zoom", "children"),
        Output("pulse", "data"),
        Input("view", "data"),
        Input("theme", "data"),
        Input("redraw", "data"),
    )
    async def draw(data: Mapping[str, Any], theme: str, _redraw: int) -> tuple[Any, Any, Any]:
        view = View.read(data)
        try:
            version = (await api.changes(view.run, 0, 0)).version
            now = await Snapshot.take(api, view)
            shown = now.drawn(view)
            series = await api.series(
                view.run,
                [m.metric for m in shown],
                attempt=view.attempt,
                first=view.first,
                last=view.last,
            )
        except ApiError as error:
            return notice(error.title, error.detail, tone="warning"), "", no_update
        span = _span(view, now, series)
        drawing = Drawing(
            theme=pick(theme),
            span=span,
            series=series,
            alerts=now.alerts,
            commands=now.commands,
            more=view.more,
            closed=view.closed,
        )
        pulse = Pulse(
            version=version,
            last_step=now.run.last_step,
            drawn=now.run.last_step,
            at={m: s.step[-1] if s.step else span.first - 1 for m, s in series.items()},
            enveloped=tuple(m for m, s in series.items() if s.bucket > 1),
            zoomed=span.zoomed,
            prints=now.prints(view),
        )
        return families(now.panels, drawing), _zoom_words(view), pulse.data()


def _span(view: View, now: Snapshot, series: Mapping[str, SeriesView]) -> figures.Span:
    if view.first is not None and view.last is not None:
        return figures.Span(first=view.first, last=view.last, zoomed=True)
    firsts = [s.step[0] for s in series.values() if s.step]
    lasts = [s.step[-1] + s.bucket - 1 for s in series.values() if s.step]
    newest = now.run.last_step if not view.attempt and now.run.last_step is not None else 0
    return figures.Span(first=min(firsts, default=0), last=max(lasts, default=newest))


def _zoom_words(view: View) -> Component:
    if view.first is None or view.last is None:
        return html.Span("Drag across a chart to zoom all of them.", className="muted hint")
    words = html.Span(f"Steps {view.first:,} to {view.last:,}", className="badge tone-info")
    return [words, html.Button("Back to the whole run", id="unzoom", className="button quiet")]


def _register_live(app: Dash, api: Api) -> None:
    """Its outputs are no inputs of `draw`: Dash would hold a drawing back until this long wait is over. A beat
    that finds that the charts must be drawn anew says so, and the browser's own script asks for it."""

    @app.callback(
        *(Output(f"run-{name}", "children") for name in PARTS),
        Output({"type": "chart", "metric": ALL}, "extendData"),
        Output({"type": "now", "metric": ALL}, "children"),
        Output("beat", "data"),
        Input("pulse", "data"),
        State("view", "data"),
        State({"type": "chart", "metric": ALL}, "id"),
        websocket=True,
        persistent=True,
        prevent_initial_call=True,
    )
    async def live(
        data: object, view_data: Mapping[str, Any], ids: Sequence[Mapping[str, str]]
    ) -> tuple[Any, ...]:
        pulse, view = Pulse.read(data), View.read(view_data)
        if pulse is None:
            raise PreventUpdate
        charts = [i["metric"] for i in ids]
        try:
            change = await next_change(api, view.run, pulse.version)
            now = await Snapshot.take(api, view)
            fresh = await fresh_points(api, view, pulse, charts)
        except SignInNeeded as error:
            return answer(charts, head=notice("Sign in to go on", str(error), tone="warning"))
        except ApiError as error:
            return answer(charts, beat=pulse.data(trouble=await after_trouble(error)))
        return beat_of(pulse, change, now, view, fresh, charts)
