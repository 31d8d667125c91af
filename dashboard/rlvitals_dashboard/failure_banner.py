"""What stands between a page and the service, said on every page: what happened, what to do, how it heals.

All states are written into the page beforehand, since a service that is away cannot write any; the browser's own
script (assets/connection.js) finds out which one holds and shows it.
"""

from __future__ import annotations

from typing import Any

from dash import html

from rlvitals_dashboard.components import Component
from rlvitals_dashboard.language import t, woven


def live_sign() -> Component:
    """For the top bar; the browser chooses between the words."""
    words: dict[str, Any] = {"data-live": t("Live"), "data-lost": t("Reconnecting")}
    word = html.Span(t("Connecting"), id="live-word", **words)
    return html.Span([html.Span(className="dot"), word], id="live-sign", className="live-sign", role="status")


def failure_banner(prefix: str) -> Component:
    """One block a state; ``.told`` takes the service's own words, ``time`` since when it holds."""
    sign_in = html.A(t("Sign in again"), href=f"{prefix}login", target="_blank", className="button primary")
    runs = html.A(t("To the runs"), href=prefix, className="button")
    serve = html.Code("rlvitals serve")
    return html.Div(
        [
            _state(
                "dead",
                t("The service does not answer"),
                [
                    t("Training goes on: trainers keep what they report and send it later. "),
                    *woven("If the service was stopped, start it again with {command}. ", command=serve),
                    t("What you see is from before; this page goes on by itself."),
                ],
            ),
            _state(
                "trouble",
                t("The service answers, but not as it should"),
                [
                    html.Span(className="told"),
                    " ",
                    t("It is asked again every few seconds, and its log says more. This page goes on by itself."),
                ],
            ),
            _state(
                "over",
                t("Your session is over"),
                t("Nothing that you typed is lost: sign in in another tab, and this page goes on by itself."),
                sign_in,
            ),
            _state(
                "refused",
                t("You may not see this"),
                [html.Span(className="told"), " ", t("Ask whoever runs the service, or sign in anew.")],
                sign_in,
            ),
            _state(
                "gone",
                t("This run is no longer there"),
                [
                    html.Span(className="told"),
                    " ",
                    t("What you see is what was last known of it. A trainer that still runs goes on training."),
                ],
                runs,
            ),
            _state(
                "lost",
                t("The live connection was lost"),
                t("It is being made anew; what you see may be a little old until then."),
            ),
        ],
        id="failure",
        role="alert",
    )


def _state(name: str, title: str, detail: Component, act: Component = None) -> Component:
    since = html.Time(className="ago since")
    words = html.Div([html.Strong(title), " ", since, html.P(detail)])
    tone = "info" if name == "lost" else "warning"
    return html.Div([words, act], className=f"notice tone-{tone} {name}")
