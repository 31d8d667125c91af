"""What the browser does by itself on the page of a run; the functions are in assets/run.js."""

from __future__ import annotations

from typing import Any

from dash import ALL, ClientsideFunction, Input, State


def register_browser(register: Any) -> None:
    def does(name: str, *wires: Any) -> None:
        register(ClientsideFunction("run", name), *wires)

    view, glance = State("view", "data"), State("glance", "data")
    does("address", Input("view", "data"), Input("glance", "data"))
    moved = [Input({"type": kind, "metric": ALL}, "relayoutData") for kind in ("chart", "heat")]
    does("zoom", *moved)
    does("unzoom", Input("unzoom", "n_clicks"), view)
    does("pick", Input({"type": "pick", "what": ALL, "value": ALL}, "n_clicks"), view)
    does("find", Input("find", "value"), view)
    does("fold", Input({"type": "fold", "family": ALL}, "n_clicks"), view)
    does("more", Input({"type": "more", "family": ALL}, "n_clicks"), view)
    does("glanced", Input("glance", "data"), Input("pulse", "data"), view)
    does("drawn", Input("drawn", "data"))
    does("tails", Input("tails", "data"))
    does("hold", Input("hold", "n_clicks"), glance)
    does("follow", Input("follow", "n_clicks"), view)
