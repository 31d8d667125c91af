"""The list of runs: traffic light and its reason first, newest activity on top, or how to attach the first run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dash import Dash, Input, Output, State, dcc, html, no_update

from rlvitals.contract.view import Light, RunView
from rlvitals_dashboard.api import Api, ApiError, SignInNeeded
from rlvitals_dashboard.components import Component, notice, run_columns, run_row
from rlvitals_dashboard.live import WATCH_MS, Pulse, after_trouble, fingerprint, next_change
from rlvitals_dashboard.words import plural

_WORST_FIRST = (Light.RED, Light.AMBER, Light.GREEN, Light.GREY)
_ATTACH = """import rlvitals

trainer = GRPOTrainer(...)
rlvitals.attach(trainer, project="my-project")   # the one line
trainer.train()"""


async def layout(api: Api, prefix: str) -> Component:
    runs = await api.runs()
    return html.Main(
        [
            html.Div([html.H1("Runs"), html.P(id="runs-summary", children=_summary(runs))], className="page-head"),
            html.Div(_listing(runs, prefix), id="runs-list"),
            dcc.Store(id="runs-pulse", data=Pulse(prints={"runs": _print(runs)}).data()),
            dcc.Store(id="runs-beat"),
            dcc.Interval(id="runs-watch", interval=WATCH_MS),
        ],
        className="page runs",
    )


def register(app: Dash, api: Api, prefix: str) -> None:
    @app.callback(
        Output("runs-list", "children"),
        Output("runs-summary", "children"),
        Output("runs-beat", "data"),
        Input("runs-pulse", "data"),
        State("runs-list", "id"),
        websocket=True,
        persistent=True,
    )
    async def live(data: object, _id: str) -> tuple[Any, Any, Any]:
        pulse = Pulse.read(data) or Pulse()
        try:
            change = await next_change(api, None, pulse.version)
            runs = await api.runs()
        except SignInNeeded as error:
            return notice("Sign in to go on", str(error), tone="warning"), "", no_update
        except ApiError as error:
            return no_update, no_update, pulse.data(trouble=await after_trouble(error))
        after = Pulse(version=change.version, prints={"runs": _print(runs)}).data()
        if after["prints"] == pulse.prints:
            return no_update, no_update, after
        return _listing(runs, prefix), _summary(runs), after


def _print(runs: Sequence[RunView]) -> int:
    return fingerprint(runs)


def _summary(runs: Sequence[RunView]) -> str:
    firing = sum(run.firing for run in runs)
    if not runs:
        return ""
    return f"{plural(len(runs), 'run')}, {plural(firing, 'alert') if firing else 'no alert'} firing"


def _listing(runs: Sequence[RunView], prefix: str) -> Component:
    if not runs:
        return _empty()
    ranked = sorted(runs, key=lambda r: r.last_seen_at, reverse=True)
    ranked.sort(key=lambda r: _WORST_FIRST.index(r.light))
    return html.Div(
        [run_columns(), *(run_row(run, f"{prefix}run/{run.id}") for run in ranked)], className="run-table"
    )


def _empty() -> Component:
    return html.Div(
        [
            html.H2("No run yet"),
            html.P("Attach your trainer with one line, and its vital signs appear here as it trains. In TRL:"),
            html.Pre(html.Code(_ATTACH), className="code"),
            html.P(
                [
                    "verl from 0.9 on needs no line at all, OpenRLHF and slime take theirs on the command line, ",
                    "a loop of your own takes a block. ",
                    html.Code("rlvitals doctor"),
                    " in the job's environment says whether a run there would be seen, and if not, why.",
                ]
            ),
            html.P(
                [
                    "On this machine the client finds the service by itself. From another one, set ",
                    html.Code("RLVITALS_URL"),
                    " and ",
                    html.Code("RLVITALS_TOKEN"),
                    " first. This page fills by itself: no reload is needed.",
                ]
            ),
        ],
        className="empty",
    )
