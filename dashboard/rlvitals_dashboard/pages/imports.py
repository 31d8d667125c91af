"""A log of a past run, dropped here: a run with its page, and the alerts that would have rung."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from dash import Dash, Input, Output, State, dcc, html

from rlvitals.formats.log import Format
from rlvitals_dashboard.api import Api, ApiError
from rlvitals_dashboard.components import Component, aria, notice
from rlvitals_dashboard.heart import Block, Heart, Query
from rlvitals_dashboard.import_panel import report, timeline
from rlvitals_dashboard.language import t
from rlvitals_dashboard.live import fingerprint

LONGEST_RUN = 128


async def layout(api: Api, prefix: str, query: Query) -> Component:
    run = query.get("run", "")[:LONGEST_RUN]
    shown = await _timeline(api, prefix, run) if run else None
    return html.Main(
        [
            html.Div(
                [
                    html.H1(t("Import")),
                    html.P(t("A log of a past run, and the alerts that it would have raised.")),
                ],
                className="page-head",
            ),
            _drop(),
            html.Details([html.Summary(t("More about it")), _options()]),
            html.Div(
                [html.Span(), html.Progress(max="1", **aria(label=t("Progress of the import")))],
                id="import-progress",
                className="loading",
                hidden=True,
                role="status",
            ),
            dcc.Store(id="import-told"),
            html.Div(shown, id="import-result"),
        ],
        className="page channels imports",
    )


def _drop() -> Component:
    formats = ", ".join(form.value for form in Format)
    return html.Label(
        [
            html.Strong(t("Drop a log here, or choose one")),
            html.Span(id="import-picker"),
            html.Span(t("{formats}; also packed with gzip.", formats=formats), className="muted"),
            html.Span(t("Nobody is notified of what is past."), className="muted"),
        ],
        className="drop",
    )


def _options() -> Component:
    hints = {"project": "default", "name": t("the file's name"), "run": t("made from the log"), "every": "1"}
    labels = {
        "project": t("Project"),
        "name": t("Name"),
        "run": t("Id"),
        "every": t("Steps between lines that say no step"),
    }
    fields = [
        html.Label([labels[name], dcc.Input(id=f"import-{name}", placeholder=hint, maxLength=128)])
        for name, hint in hints.items()
    ]
    known = html.Datalist([html.Option(value=form.value) for form in Format], id="import-formats")
    form = dcc.Input(id="import-format", list="import-formats", placeholder=t("found out"), maxLength=40)
    return html.Div([*fields, html.Label([t("Format"), form]), known], className="import-options")


async def _timeline(api: Api, prefix: str, run: str) -> Sequence[Component]:
    try:
        blocks = await heart(prefix).draw(api, {"run": run})
    except ApiError as error:
        return [notice(error.title, error.detail, tone="warning")]
    return [blocks["timeline"], blocks["heart"]]


def heart(prefix: str) -> Heart:
    async def look(api: Api, query: Query) -> Mapping[str, Block]:
        name = query.get("run", "")
        run, alerts, judged = await asyncio.gather(api.run(name), api.alerts(name), api.judged(name))
        return {
            "timeline": Block(
                stamp=fingerprint(alerts, judged, run.name), make=lambda: timeline(run, alerts, judged, prefix)
            )
        }

    return Heart(key="import", blocks=("timeline",), look=look)


def register(app: Dash, api: Api, prefix: str) -> None:
    heart(prefix).register(app, api)

    @app.callback(
        Output("import-result", "children"),
        Input("import-told", "data"),
        State("import-told", "id"),
        prevent_initial_call=True,
    )
    async def show(told: Mapping[str, Any] | None, _id: str) -> Component:
        """The answer, and from then on how far the rules are and what they say."""
        parts: list[Component] = [report(told or {}, prefix)]
        body = (told or {}).get("body")
        run = body.get("run") if isinstance(body, Mapping) and (told or {}).get("status") == 200 else None
        return parts + list(await _timeline(api, prefix, run)) if isinstance(run, str) else parts
