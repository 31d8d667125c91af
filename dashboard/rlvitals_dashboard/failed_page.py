"""The page in place of one that could not be made: what happened, what to do, and whether it comes by itself."""

from __future__ import annotations

from collections.abc import Sequence

from dash import dcc, html

from rlvitals_dashboard.api import ApiError, Forbidden, NotFound, SignInNeeded
from rlvitals_dashboard.components import Component, visible
from rlvitals_dashboard.language import t

LONGEST_DETAIL = 400


def failed_page(error: ApiError, prefix: str, place: str) -> Component:
    """``place`` is the path below the prefix that was asked for."""
    detail = visible(error.detail or error.title, LONGEST_DETAIL)
    if isinstance(error, SignInNeeded):
        words = t("Open the link that `rlvitals serve` printed when it started, or sign in with a token.")
        return _page(t("Sign in first"), words, [_sign_in(prefix)], heals=True)
    if isinstance(error, Forbidden):
        return _page(t("You may not see this"), detail, [_sign_in(prefix), _runs(prefix)], heals=True)
    if isinstance(error, NotFound):
        return _not_here(detail, prefix, place)
    later = html.P(t("This page is asked for again every few seconds and comes by itself."))
    return _page(visible(error.title, LONGEST_DETAIL), [html.Span(detail), later], [_runs(prefix)], heals=True)


def no_such_page(prefix: str) -> Component:
    """For an address that names no page, as one that was cut off."""
    words = t("There is no such page. If you were sent this address, it may have been cut off.")
    return _page(t("Not here"), words, [_runs(prefix)], heals=False)


def _not_here(detail: Component, prefix: str, place: str) -> Component:
    """A run may still come: its trainer makes it with the first report."""
    if not place.startswith("run/"):
        return _page(t("Not here"), detail, [_runs(prefix)], heals=False)
    hint = t("It may have been deleted, or the address was cut off. A run appears here with its first report.")
    return _page(t("Not here"), [html.Span(detail), html.P(hint)], [_runs(prefix)], heals=True)


def _runs(prefix: str) -> Component:
    return dcc.Link(t("To the runs"), href=prefix, className="button")


def _sign_in(prefix: str) -> Component:
    return html.A(t("Sign in"), href=f"{prefix}login", className="button primary")


def _page(title: Component, detail: Component, ways: Sequence[Component], *, heals: bool) -> Component:
    body = [html.H1(title), html.Div(detail, className="detail"), html.Div(ways, className="buttons")]
    return html.Main(html.Div(body, className="empty"), className=f"page failed{' heals' if heals else ''}")
