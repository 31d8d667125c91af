"""Browsers that are signed in, and links that show one run, as people see them."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from dash import dcc, html

from rlvitals.contract.access import AccessKind, SessionView, ShareView
from rlvitals_dashboard.asking import ask_once, do, say_number, say_where, subject_of
from rlvitals_dashboard.components import LONGEST_NAME, Component, mark, visible, when
from rlvitals_dashboard.language import phrase, t
from rlvitals_dashboard.line_table import line_table
from rlvitals_dashboard.theme import Look

KINDS = {
    AccessKind.USER: phrase("a person"),
    AccessKind.TOKEN: phrase("a token"),
    AccessKind.SHARE: phrase("a shared link"),
}
_OPEN = Look(tone="good", mark="●", word=phrase("Ends"))
_OVER = Look(tone="idle", mark="○", word=phrase("Over"))
SHARE_HOURS = 24
BROWSERS = (
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("Firefox/", "Firefox"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
)
SYSTEMS = (
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Windows", "Windows"),
    ("Mac OS", "macOS"),
    ("Linux", "Linux"),
)
"""By what stands in the header; the first that is found counts, since each names its forebears too."""
LONGEST_AGENT = 120


def session_table(sessions: Sequence[SessionView]) -> Component:
    if not sessions:
        return html.P(t("Nobody is signed in with a browser."), className="quiet")
    names = (
        t("Who"),
        t("Signed in by"),
        t("Browser"),
        t("Last seen"),
        t("Ends"),
        html.Span(t("Deed"), className="unseen"),
    )
    return line_table(t("Sessions"), names, [_session(session) for session in sessions])


def _session(session: SessionView) -> Component:
    words = t("Its browser is asked to sign in at its next request.")
    end = ask_once(t("End"), words, do(t("Yes, end it"), "end-session", session.id, tone="danger"))
    return html.Tr(
        [
            html.Td(html.B(visible(session.name, LONGEST_NAME))),
            html.Td(t(KINDS[session.kind])),
            html.Td(
                visible(browser(session.agent), LONGEST_AGENT), className="detail", title=session.agent or None
            ),
            html.Td(when(session.seen_at)),
            html.Td(when(min(session.idle_at, session.expires_at))),
            html.Td(t("this browser") if session.current else end),
        ]
    )


def browser(agent: str) -> str:
    """What a browser says of itself, in few words; as it is where it says something else."""
    name = next((name for mark, name in BROWSERS if mark in agent), "")
    system = next((name for mark, name in SYSTEMS if mark in agent), "")
    return " · ".join(word for word in (name, system) if word) or agent or "–"


def end_all(*, everybody: bool) -> Component:
    """``everybody``: may those of others be ended too?"""
    own = t("All your other browsers are asked to sign in at their next request.")
    mine = ask_once(t("End my other sessions"), own, do(t("Yes, end them"), "end-sessions", "own", tone="danger"))
    if not everybody:
        return html.Div(mine, className="buttons own")
    words = t("Everybody but this browser has to sign in anew, also who looks through a shared link.")
    act = do(t("Yes, sign everybody out"), "end-sessions", "everybody", tone="danger")
    return html.Div([mine, ask_once(t("End all sessions"), words, act)], className="buttons own")


def share_table(shares: Sequence[ShareView], prefix: str) -> Component:
    if not shares:
        words = t(
            "No link yet. A run's page has Share: whoever has the link sees that run, reads, and nothing else."
        )
        return html.P(words, className="quiet")
    rows = sorted(shares, key=lambda share: not share.open)
    names = (
        t("State"),
        t("Run"),
        t("View"),
        t("Made by"),
        t("Last used"),
        html.Span(t("Deed"), className="unseen"),
    )
    return line_table(t("Shared links"), names, [_share(share, prefix) for share in rows])


def _share(share: ShareView, prefix: str) -> Component:
    look, ends = (_OPEN, share.expires_at) if share.open else (_OVER, share.revoked_at or share.expires_at)
    words = t("The link shows nothing from now on, also to who is looking.")
    back = ask_once(t("Take back"), words, do(t("Yes, take it back"), "revoke-share", share.id, tone="danger"))
    run = dcc.Link(visible(share.run, LONGEST_NAME), href=f"{prefix}run/{quote(share.run, safe='')}")
    return html.Tr(
        [
            html.Td([mark(look, words=t(look.word)), " ", when(ends)]),
            html.Td(run),
            html.Td(html.Code(visible(share.view or "/", LONGEST_NAME)), className="detail"),
            html.Td([*visible(share.created_by, LONGEST_NAME), ", ", when(share.created_at)]),
            html.Td(when(share.last_used_at) if share.last_used_at else t("never")),
            html.Td(back if share.open else None),
        ]
    )


def share_button(run: str) -> Component:
    """Beside the tabs of a run's pages: a link to what is in the address."""
    words = t(
        "Whoever has the link sees this view of this run without signing in, until it expires. They only read."
    )
    subject = subject_of(run)
    hours = say_number("share", subject, t("Good for, in hours"), SHARE_HOURS, low=0.1, high=720)
    act = html.Div([hours, say_where("share", subject), do(t("Yes, make a link"), "share", subject)])
    return html.Div(ask_once(t("Share"), words, act), className="share")
