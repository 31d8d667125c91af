"""Runs side by side: the charts are drawn when the address, the theme or one of the runs moves."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from dash import ALL, ClientsideFunction, Dash, Input, Output, State, html

from rlvitals_dashboard.api import Api, ApiError
from rlvitals_dashboard.comparison_blocks import (
    alone,
    chooser,
    healthy_words,
    letter_of,
    metric_chips,
    nothing_chosen,
)
from rlvitals_dashboard.comparison_panel import drawn
from rlvitals_dashboard.comparison_snapshot import Snapshot, find_run, read_metrics
from rlvitals_dashboard.comparison_view import View, address, choose_metrics, offered
from rlvitals_dashboard.components import Component, notice
from rlvitals_dashboard.heart import Block, Heart, Query
from rlvitals_dashboard.language import t
from rlvitals_dashboard.theme import pick

VIEW = {"type": "view", "page": "compare"}


def heart(prefix: str) -> Heart:
    async def look(api: Api, query: Query) -> Mapping[str, Block]:
        return (await Snapshot.take(api, View.read(query))).blocks(prefix)

    return Heart(key="compare", blocks=("runs", "moved", "settings"), look=look)


async def layout(api: Api, prefix: str, query: Query) -> Component:
    view = View.read(query)

    def way(**changes: Any) -> str:
        return address(prefix, view, **changes)

    blocks, runs, metrics = await asyncio.gather(
        heart(prefix).draw(api, view.asked()),
        api.runs(),
        asyncio.gather(*(read_metrics(api, key) for key in view.runs)),
    )
    body: list[Component] = [html.Div(id="compare-drawn", className="compare-drawn"), blocks["settings"]]
    if not view.runs:
        body = [nothing_chosen(runs, way), html.Div([*body], hidden=True)]
    elif len(view.runs) == 1:
        body = [alone(view, runs, way), *body]
    return html.Main(
        [
            html.Div([html.H1(t("Compare")), html.P(t("runs side by side"))], className="page-head"),
            blocks["runs"],
            chooser(view, runs, offered(metrics), prefix, way),
            *body,
            blocks["moved"],
            blocks["heart"],
        ],
        className="page compare",
    )


def register(app: Dash, api: Api, prefix: str) -> None:
    heart(prefix).register(app, api)

    @app.callback(
        Output("compare-drawn", "children"),
        Input(VIEW, "data"),
        Input("theme", "data"),
        Input("compare-moved", "data"),
    )
    async def draw(data: Query | None, theme: str, _moved: object) -> Component:
        view = View.read(data or {})
        if not view.runs:
            return None
        try:
            return await _draw(api, prefix, view, theme)
        except ApiError as error:
            return notice(error.title, error.detail, tone="warning")


def register_browser(register: Any) -> None:
    """What the browser does by itself; the functions are in assets/compare.js."""
    view = State(VIEW, "data")
    register(
        ClientsideFunction("compare", "zoom"), Input({"type": "compared", "metric": ALL}, "relayoutData"), view
    )
    register(ClientsideFunction("compare", "unzoom"), Input("compare-unzoom", "n_clicks"), view)


async def _draw(api: Api, prefix: str, view: View, theme: str) -> list[Component]:
    found = await asyncio.gather(*(find_run(api, key) for key in view.runs))
    there = [key for key, run in zip(view.runs, found, strict=True) if run is not None]
    metrics = choose_metrics(view, await asyncio.gather(*(read_metrics(api, key) for key in there)))
    if not there or not metrics:
        words = (
            t("None of these runs is there.") if not there else t("None of these runs has reported a metric yet.")
        )
        return [notice(words, t("Charts appear here by themselves as soon as there is something to draw."))]

    def way(**changes: Any) -> str:
        return address(prefix, view, **changes)

    seen = await api.compared(there, metrics, view.by, view.first, view.last, view.healthy)
    letters = {key: letter_of(view, key) for key in there}
    zoom = None if view.first is None or view.last is None else (view.first, view.last)
    hint: Component = html.Span(t("Drag across a chart to zoom all of them."), className="muted hint")
    if zoom:
        hint = html.Button(t("Back to the whole runs"), id="compare-unzoom", className="button quiet")
    tools = html.Div([metric_chips(view, metrics, way), html.Div(hint, className="zoom")], className="tools")
    band = healthy_words(view, seen.healthy, seen.healthy_reason, prefix, way)
    axis = html.P(t("The axis counts {counted}.", counted=seen.counted), className="muted")
    panels = drawn(seen, letters, pick(theme), zoom)
    return [*panels[:-1], html.Div([tools, html.Div([axis, band], className="axis-words")]), panels[-1]]
