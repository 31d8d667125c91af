"""What stands around every page: the bar with the way between them, what is wrong, and what the browser keeps."""

from __future__ import annotations

from dash import dcc, html

from rlvitals_dashboard import nav, problem_banner
from rlvitals_dashboard.components import Component, aria
from rlvitals_dashboard.crash_notice import crash_place
from rlvitals_dashboard.display_choice import browser_phrases, display_choice
from rlvitals_dashboard.failure_banner import failure_banner, live_sign
from rlvitals_dashboard.language import t


def shell(prefix: str) -> Component:
    return html.Div(
        [
            dcc.Location(id="url", refresh="callback-nav"),
            dcc.Store(id="theme"),
            dcc.Store(id="done"),
            dcc.Store(id="retry"),
            dcc.Store(id="routed"),
            html.A(t("Skip to the content"), href="#page", className="skip"),
            html.Header(
                [
                    dcc.Link(
                        [html.Span(className="logo"), html.Span("RL Vitals")], href=prefix, className="brand"
                    ),
                    nav.menu_button(),
                    html.Nav(nav.bar(prefix, ""), id="nav", className="nav", **aria(label=t("Pages"))),
                    html.Span(id="crumbs", className="crumbs"),
                    live_sign(),
                    display_choice(),
                    html.Button(
                        html.Span(className="theme-icon"),
                        id="theme-toggle",
                        className="icon-button",
                        title=t("Light or dark"),
                        **aria(label=t("Switch between light and dark")),
                    ),
                ],
                className="top",
            ),
            failure_banner(prefix),
            problem_banner.problem_banner(),
            crash_place(),
            html.Div(id="page"),
            browser_phrases(),
        ]
    )
