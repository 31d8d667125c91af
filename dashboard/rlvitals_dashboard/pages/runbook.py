"""The runbook of one alert: what it means, what to check, what helped others."""

from __future__ import annotations

from dash import dcc, html

from rlvitals_dashboard import nav
from rlvitals_dashboard.api import NotFound
from rlvitals_dashboard.components import Component
from rlvitals_dashboard.language import t
from rlvitals_dashboard.runbooks import read_runbook


def layout(prefix: str, name: str) -> Component:
    text = read_runbook(name)
    if not text:
        raise NotFound(t("Not here"), t("There is no runbook {name}.", name=f"{name[:64]!r}"))
    return html.Main(
        [
            html.Div([html.H1(name), html.P(t("Runbook"))], className="page-head"),
            nav.rule_tabs(prefix, ""),
            dcc.Markdown(text, className="panel runbook", link_target="_blank"),
        ],
        className="page control rules",
    )
