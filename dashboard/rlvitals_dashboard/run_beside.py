"""What is drawn beside the charts of a run: distributions over the steps, completions of the step looked at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dash import Dash, Input, Output, State

from rlvitals_dashboard.api import Api, ApiError
from rlvitals_dashboard.components import notice
from rlvitals_dashboard.run_heat import heat_panel
from rlvitals_dashboard.run_texts import texts_at
from rlvitals_dashboard.run_view import Glance, View


def register_beside(app: Dash, api: Api) -> None:
    """When the distributions are to be drawn, the browser's own script says in ``heat-ask``."""

    @app.callback(
        Output("heats", "children"),
        Input("heat-ask", "data"),
        Input("theme", "data"),
        State("view", "data"),
        prevent_initial_call=True,
        websocket=True,
    )
    async def heats(_asked: float, theme: str, data: Mapping[str, Any]) -> Any:
        try:
            return await heat_panel(api, View.read(data), theme)
        except ApiError as error:
            return notice(error.title, error.detail, tone="warning")

    @app.callback(Output("step-texts", "children"), Input("glance", "data"), State("view", "data"))
    async def texts(glance: Mapping[str, Any], data: Mapping[str, Any]) -> Any:
        try:
            return await texts_at(api, View.read(data), Glance.read(glance))
        except ApiError as error:
            return notice(error.title, error.detail, tone="warning")
