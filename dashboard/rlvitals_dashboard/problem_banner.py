"""Says on every page what of the service is not as its operator wants it: rule files, channels, its own parts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from dash import Dash, Input, Output, dcc, html, no_update

from rlvitals.contract.channelbook import ChannelBookView
from rlvitals.contract.health import HealthView
from rlvitals.contract.rulebook import RuleBookView
from rlvitals_dashboard.api import Api, ApiError
from rlvitals_dashboard.components import Component, visible
from rlvitals_dashboard.language import t
from rlvitals_dashboard.words import plural

LOOK_MS = 10_000
SHOWN_MAX = 5

_View = TypeVar("_View")


def problem_banner() -> Component:
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
        told = await asyncio.gather(
            _told(api.health, tell_health), _told(api.rulebook, tell_rules), _told(api.channel_book, tell_channels)
        )
        # Where there is no answer at all, the page itself says so.
        return (
            no_update if all(one is no_update for one in told) else [one for one in told if one is not no_update]
        )


async def _told(ask: Callable[[], Awaitable[_View]], tell: Callable[[_View], Component]) -> Component:
    try:
        return tell(await ask())
    except ApiError:
        return no_update


def tell_rules(book: RuleBookView) -> Component:
    """Nothing while the files are in force."""
    since = t(
        "The {rules} loaded at {loaded_at} UTC go on judging.",
        rules=plural(book.rules, "rule"),
        loaded_at=f"{book.loaded_at:%Y-%m-%d %H:%M}",
    )
    return _notice(t("A rule file is not in force"), since, book.problems)


def tell_channels(book: ChannelBookView) -> Component:
    """Nothing while all channels are as they are written."""
    rest = t(
        "The {channels} in force go on; one that was right before goes on as it was.",
        channels=plural(book.channels, "channel"),
    )
    return _notice(t("A channel is not in force as it is written"), rest, book.problems)


def tell_health(health: HealthView) -> Component:
    """Nothing while all parts are well."""
    ill = [f"{part.name}: {part.words}" for part in health.parts if not part.well]
    return _notice(t("The service is not well"), t("What it shows may be old, and alerts may go unheard."), ill)


def _notice(title: str, rest: str, problems: Sequence[str]) -> Component:
    if not problems:
        return None
    left = len(problems) - SHOWN_MAX
    lines = [html.Li(visible(problem, 300)) for problem in problems[:SHOWN_MAX]]
    more = [html.Li(t("and {problems}", problems=plural(left, "more problem")))] if left > 0 else []
    body = [html.Strong(title), html.P(rest), html.Ul([*lines, *more])]
    return html.Div(body, className="notice tone-warning", role="status")
