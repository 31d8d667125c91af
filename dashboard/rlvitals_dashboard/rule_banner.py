"""Says on every page that rule files were changed for the worse, and which rules go on meanwhile."""

from __future__ import annotations

from dash import Dash, Input, Output, dcc, html, no_update

from rlvitals.contract.rulebook import RuleBookView
from rlvitals_dashboard.api import Api, ApiError
from rlvitals_dashboard.components import Component, visible
from rlvitals_dashboard.words import plural

LOOK_MS = 10_000
SHOWN_MAX = 5


def rule_banner() -> Component:
    """The place of it, and the beat by which it is looked after."""
    return html.Div([html.Div(id="rule-banner"), dcc.Interval(id="rule-watch", interval=LOOK_MS)])


def register(app: Dash, api: Api) -> None:
    @app.callback(
        Output("rule-banner", "children"),
        Input("rule-watch", "n_intervals"),
        Input("url", "pathname"),
        websocket=True,  # the page has one anyway
    )
    async def look(_beat: int | None, _pathname: str | None) -> Component:
        try:
            return tell(await api.rulebook())
        except ApiError:  # the page itself says that there is no answer
            return no_update


def tell(book: RuleBookView) -> Component:
    """Nothing while the files are in force."""
    if not book.problems:
        return None
    since = f"The {plural(book.rules, 'rule')} loaded at {book.loaded_at:%Y-%m-%d %H:%M} UTC go on judging."
    rest = len(book.problems) - SHOWN_MAX
    lines = [html.Li(visible(problem, 300)) for problem in book.problems[:SHOWN_MAX]]
    more = [html.Li(f"and {plural(rest, 'more problem')}")] if rest > 0 else []
    body = [html.Strong("A rule file is not in force"), html.P(since), html.Ul([*lines, *more])]
    return html.Div(body, className="notice tone-warning", role="status")
