"""What is drawn beside the charts of a run: distributions over the steps, completions of the step looked at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dash import Dash, Input, Output, State, no_update
from dash.exceptions import PreventUpdate

from rlvitals_dashboard.api import Api, ApiError
from rlvitals_dashboard.components import notice
from rlvitals_dashboard.run_heat import heat_panel
from rlvitals_dashboard.run_texts import texts_at
from rlvitals_dashboard.run_view import Glance, View

HEAT_MS = 15_000


def register_beside(app: Dash, api: Api) -> None:
    @app.callback(
        Output("heats", "children"),
        Input("view", "data"),
        Input("theme", "data"),
        Input("heat-watch", "n_intervals"),
        State("glance", "data"),
        websocket=True,
    )
    async def heats(data: Mapping[str, Any], theme: str, ticks: int | None, glance: Mapping[str, Any]) -> Any:
        view = View.read(data)
        if ticks and (Glance.read(glance).paused or view.last is not None):
            raise PreventUpdate
        try:
            return await heat_panel(api, view, theme)
        except ApiError as error:
            return no_update if ticks else notice(error.title, error.detail, tone="warning")

    @app.callback(Output("step-texts", "children"), Input("glance", "data"), State("view", "data"))
    async def texts(glance: Mapping[str, Any], data: Mapping[str, Any]) -> Any:
        try:
            return await texts_at(api, View.read(data), Glance.read(glance))
        except ApiError as error:
            return notice(error.title, error.detail, tone="warning")
