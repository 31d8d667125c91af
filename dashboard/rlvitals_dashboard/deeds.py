"""What a person does on any page: each deed is one call of the API in the person's own name, and one answer.

The answer goes to a place of its own: the card that was clicked may be gone before it comes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from time import time
from typing import Any, TypeAlias

from dash import ALL, Dash, Input, Output, State, ctx, html
from dash.exceptions import PreventUpdate

from rlvitals.contract.command import CommandKind, CommandState
from rlvitals.contract.view import CommandView
from rlvitals_dashboard.api import Api, ApiError
from rlvitals_dashboard.components import Component, notice
from rlvitals_dashboard.words import plural

Said: TypeAlias = Mapping[str, object]
"""What was typed beside the button, by name."""


def verdict_place() -> Component:
    """Where the answers come; once on every page on which something can be done."""
    return html.Div(
        [
            html.Div(id="verdict", role="status"),
            html.Span("Asking …", className="asking-sign"),
        ],
        id="verdict-place",
    )


def register(app: Dash, api: Api) -> None:
    @app.callback(
        Output("verdict", "children"),
        Output("done", "data"),
        Input({"type": "do", "deed": ALL, "subject": ALL}, "n_clicks"),
        State({"type": "say", "deed": ALL, "subject": ALL, "name": ALL}, "value"),
        State({"type": "say", "deed": ALL, "subject": ALL, "name": ALL}, "id"),
        running=[(Output("verdict-place", "className"), "at-work", "")],
        prevent_initial_call=True,
    )
    async def act(
        _clicks: object, values: Sequence[object], ids: Sequence[Mapping[str, str]]
    ) -> tuple[Component, float]:
        if len(ctx.triggered) != 1 or not ctx.triggered[0]["value"]:
            raise PreventUpdate  # a new card came in; nobody clicked
        clicked = ctx.triggered_id
        deed, subject = clicked["deed"], clicked["subject"]
        said = {
            field["name"]: value
            for field, value in zip(ids, values, strict=True)
            if (field["deed"], field["subject"]) == (deed, subject)
        }
        try:
            return await DEEDS[deed](api, subject, said), time()
        except ApiError as error:
            return notice(error.title, error.detail, tone="critical"), time()


def number_of(said: Said, name: str = "argument") -> float | None:
    value = said.get(name)
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def words_of(said: Said, name: str) -> str:
    value = said.get(name)
    return value.strip() if isinstance(value, str) else ""


async def _approve(api: Api, command: str, said: Said) -> Component:
    return _released(await api.approve(command, number_of(said)), "Approved")


def _released(command: CommandView, done: str) -> Component:
    """Whether the trainer gets it now, or another person has to approve it as well."""
    if command.state is CommandState.PROPOSED:
        return notice(
            f"{done}. {plural(command.persons, 'different person', 'different people')} must approve it."
        )
    return notice(f"{done}. The trainer gets it with its next report.", tone="good")


async def _deny(api: Api, command: str, said: Said) -> Component:
    await api.deny(command, words_of(said, "reason"))
    return notice("Denied.")


async def _own(api: Api, subject: str, said: Said) -> Component:
    kind, run, *knob = subject.split(" ", 2)
    made = await api.ask(run, CommandKind(kind), number_of(said), words_of(said, "why"), "".join(knob))
    return _released(made, "Asked for")


async def _acknowledge(api: Api, alert: str, _said: Said) -> Component:
    await api.acknowledge(alert)
    return None


DEEDS: Mapping[str, Callable[[Api, str, Said], Awaitable[Any]]] = {
    "approve": _approve,
    "deny": _deny,
    "own": _own,
    "acknowledge": _acknowledge,
}
