"""Other steps for the charts that a browser shows of a run: its own script asks, and gives them to the charts.

Not a callback: those are held up by each other, and each of their values passes through the whole page's state.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from dash.development.base_component import Component as DashComponent
from fastapi import FastAPI, Request
from fastapi.responses import Response
from plotly.utils import PlotlyJSONEncoder

from rlvitals_dashboard.api import Api, ApiError
from rlvitals_dashboard.run_drawing import OtherSteps, draw_steps
from rlvitals_dashboard.run_view import View

PLACE = "charts/"
"""Below the dashboard's prefix."""
MOST_CHARTS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """``frame`` is what the charts in the browser were drawn by, see `live.Pulse`."""

    view: View
    theme: str
    frame: int
    metrics: Sequence[str]

    @classmethod
    def read(cls, run: str, body: object) -> Asked | None:
        """None for anything that our script does not ask."""
        told = body if isinstance(body, Mapping) else {}
        view, frame, metrics = told.get("view"), told.get("frame"), told.get("metrics")
        if not isinstance(view, Mapping) or not isinstance(frame, int) or not isinstance(metrics, list):
            return None
        if len(metrics) > MOST_CHARTS or not all(isinstance(metric, str) for metric in metrics):
            return None
        read = View.read({**view, "run": run})
        return cls(view=read, theme=str(told.get("theme")), frame=frame, metrics=metrics)


def add_chart_route(server: FastAPI, api: Api, prefix: str) -> None:
    async def charts(run: str, request: Request) -> Response:
        try:
            asked = Asked.read(run, orjson.loads(await request.body()))
        except orjson.JSONDecodeError:
            asked = None
        if asked is None:
            return _answer({"title": "Not understood", "status": 422}, 422)
        try:
            made = await draw_steps(api, asked.view, asked.theme, asked.frame, asked.metrics)
        except ApiError as error:
            return _answer({"title": error.title, "detail": error.detail, "status": 502}, 502)
        return _answer({"redraw": True} if made is None else _told(made))

    place = f"{prefix}{PLACE}{{run}}"
    server.add_api_route(place, charts, methods=["POST"], include_in_schema=False)


def _told(made: OtherSteps) -> dict[str, Any]:
    parts = {
        metric: {"figure": part.figure, "caption": part.caption, "marks": part.marks}
        for metric, part in made.parts.items()
    }
    return {"parts": parts, "tools": made.tools, "pulse": made.pulse}


def _answer(told: Mapping[str, Any], status: int = 200) -> Response:
    try:
        body = orjson.dumps(told, default=_plain)
    except TypeError:  # lone surrogates of a broken tokenizer
        body = json.dumps(told, cls=PlotlyJSONEncoder).encode("ascii")
    return Response(body, status, {"cache-control": "no-store"}, "application/json")


def _plain(value: object) -> Any:
    if isinstance(value, DashComponent):
        return value.to_plotly_json()  # type: ignore[no-untyped-call]
    raise TypeError(type(value).__name__)
