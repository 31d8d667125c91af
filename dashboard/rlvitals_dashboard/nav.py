"""The way between the pages: which there are, and where one is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from dash import Dash, Input, Output, dcc, html, no_update

from rlvitals.contract.command import CommandState
from rlvitals_dashboard.access_sessions import share_button
from rlvitals_dashboard.api import Api, ApiError
from rlvitals_dashboard.components import Component, aria
from rlvitals_dashboard.language import t
from rlvitals_dashboard.words import plural

PREFIX = "/ui/"
GUEST = "guest"
"""Class of the page for who came by a shared link: they read, and are shown no deed (assets/vitals.css)."""
READER = "reading"
"""The same for who signed in and may only read: they are shown the deeds that they may do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """``path`` below the prefix."""

    path: str
    title: str


PLACES = (
    Place(path="", title="Runs"),
    Place(path="compare", title="Compare"),
    Place(path="incidents", title="Incidents"),
    Place(path="control", title="Control"),
    Place(path="channels", title="Channels"),
    Place(path="rules", title="Rules"),
    Place(path="import", title="Import"),
    Place(path="settings", title="Settings"),
)
SETTINGS = (
    Place(path="settings", title="Service"),
    Place(path="settings/people", title="People"),
    Place(path="settings/tokens", title="API tokens"),
    Place(path="settings/sessions", title="Sessions"),
    Place(path="settings/shares", title="Shared links"),
    Place(path="settings/retention", title="Retention"),
    Place(path="channels", title="Channels"),
    Place(path="control/policies", title="Policies"),
)
"""The last two have pages of their own elsewhere."""
RULES = (
    Place(path="rules", title="In force"),
    Place(path="rules/edit", title="Edit and try"),
)
CONTROL = (
    Place(path="control", title="Actions"),
    Place(path="control/policies", title="Policies"),
    Place(path="control/silences", title="Silences"),
    Place(path="control/audit", title="Audit"),
)
RUN = (
    Place(path="", title="Charts"),
    Place(path="texts", title="Texts"),
    Place(path="incidents", title="Incidents"),
)
"""Below a run."""


def bar(prefix: str, place: str) -> Component:
    """``place`` is a path below the prefix; a run's page is among the runs."""
    head = place.partition("/")[0]
    here = head if head in {p.path for p in PLACES} else ""
    return _links(PLACES, prefix, here, waiting=True)


def shared_bar(prefix: str) -> Component:
    """For who came by a shared link: there is nothing else to go to."""
    return [
        html.Span(t("A shared view of one run, for reading")),
        html.A(t("Sign in"), href=f"{prefix}login"),
        html.Span(id="waiting", hidden=True),
    ]


def menu_button() -> Component:
    """Where the bar has no room for the pages, they are behind this (assets/menu.js)."""
    sign = html.Span("☰", **aria(hidden="true"))
    told = aria(expanded="false", controls="nav")
    return html.Button(
        [sign, t("Menu"), html.Span(id="menu-waiting")], id="menu-toggle", className="menu-toggle", **told
    )


def tabs(prefix: str, here: str) -> Component:
    """Between the pages of control."""
    return html.Nav(_links(CONTROL, prefix, here), className="tabs", **aria(label=t("Control")))


def run_tabs(prefix: str, run: str, here: str) -> Component:
    """Between the pages of one run; ``here`` is the title of one of `RUN`."""
    below = f"{prefix}run/{quote(run, safe='')}"
    links = [
        dcc.Link(
            t(place.title),
            href=f"{below}/{place.path}" if place.path else below,
            className="here" if place.title == here else "",
        )
        for place in RUN
    ]
    links.append(
        dcc.Link(t("Compare"), href=f"{prefix}compare?runs={quote(run, safe='')}", className="deed reader")
    )
    tabs_of_run = html.Nav(links, className="tabs", **aria(label=t("This run")))
    return html.Div([tabs_of_run, share_button(run)], className="run-tabs")


def settings_tabs(prefix: str, here: str) -> Component:
    return html.Nav(_links(SETTINGS, prefix, here), className="tabs", **aria(label=t("Settings")))


def rule_tabs(prefix: str, here: str) -> Component:
    return html.Nav(_links(RULES, prefix, here), className="tabs", **aria(label=t("Rules")))


def _links(places: Sequence[Place], prefix: str, here: str, *, waiting: bool = False) -> list[Component]:
    return [
        dcc.Link(
            [t(place.title), html.Span(id="waiting") if waiting and place.path == "control" else None],
            href=f"{prefix}{place.path}",
            className="here" if place.path == here else "",
        )
        for place in places
    ]


def register(app: Dash, api: Api) -> None:
    @app.callback(
        Output("waiting", "children"),
        Output("waiting", "title"),
        Output("menu-waiting", "children"),
        Input("rule-watch", "n_intervals"),
        Input("url", "pathname"),
        Input("done", "data"),
        websocket=True,
    )
    async def look(*_beats: object) -> tuple[Component, Component, Component]:
        try:
            waiting = await api.commands(state=CommandState.PROPOSED)
        except ApiError:  # the page itself says that there is no answer
            return no_update, no_update, no_update
        count = len(waiting)
        if not count:
            return "", "", ""
        return str(count), t("{proposals} to decide", proposals=plural(count, "proposal")), str(count)
