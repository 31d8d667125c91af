"""A secret that was just made: it is shown once, to be copied at once."""

from __future__ import annotations

from dash import html

from rlvitals_dashboard.api import visitor
from rlvitals_dashboard.components import Component, aria, notice
from rlvitals_dashboard.language import t


def shown_once(title: str, secret: str, *after: Component) -> Component:
    """``after`` is said below it. The browser's own script copies it (assets/copying.js)."""
    copy = html.Button(t("Copy"), className="button copy", **aria(label=t("Copy it")))
    line = html.Div([html.Code(secret, className="secret"), copy], className="once")
    return notice(title, [html.Span(t("Copy it now: it is not shown again.")), line, *after], tone="good")


def whole_address(path: str) -> str:
    """A path of this service as the person reaches it."""
    who = visitor.get()
    return f"{who.scheme}://{who.host}{path}" if who else path
