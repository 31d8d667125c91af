"""Tokens of programs, as people see them."""

from __future__ import annotations

from collections.abc import Sequence

from dash import html

from rlvitals.contract.access import TokenView
from rlvitals_dashboard.asking import ask_once, do, say, say_number, subject_of
from rlvitals_dashboard.components import LONGEST_NAME, Component, mark, visible, when
from rlvitals_dashboard.language import phrase, t
from rlvitals_dashboard.line_table import line_table
from rlvitals_dashboard.theme import Look

SCOPES = {
    "ingest": phrase("A trainer that reports"),
    "read": phrase("Somebody who reads"),
    "operate": phrase("Somebody who acts"),
    "admin": phrase("An administrator"),
}
"""What a token is for, by the scope that it gets."""
_GOOD = Look(tone="good", mark="●", word=phrase("Good"))
_ENDS = Look(tone="info", mark="◷", word=phrase("Ends"))
_OVER = Look(tone="idle", mark="○", word=phrase("Over"))


def token_table(tokens: Sequence[TokenView]) -> Component:
    """Those that are good first; each with what can be done with it."""
    if not tokens:
        return html.P(t("No token yet."), className="quiet")
    rows = sorted(tokens, key=lambda token: (not token.valid, token.name))
    names = (
        t("State"),
        t("Name"),
        t("Scopes"),
        t("Last used"),
        t("Made"),
        html.Span(t("Deed"), className="unseen"),
    )
    return line_table(t("API tokens"), names, [_row(token) for token in rows])


def token_look(token: TokenView) -> Look:
    if not token.valid:
        return _OVER
    return _ENDS if token.expires_at is not None else _GOOD


def _row(token: TokenView) -> Component:
    look = token_look(token)
    ends = token.revoked_at or token.expires_at
    made = [when(token.created_at)]
    if token.created_by:
        made += [" ", html.Span(visible(token.created_by, LONGEST_NAME), className="muted")]
    return html.Tr(
        [
            html.Td([mark(look, words=t(look.word)), *([" ", when(ends)] if ends else [])]),
            html.Td(html.B(visible(token.name, LONGEST_NAME))),
            html.Td([html.Code(visible(scope, LONGEST_NAME), className="matcher") for scope in token.scopes]),
            html.Td(when(token.last_used_at) if token.last_used_at else t("never")),
            html.Td(made),
            html.Td(_deeds(token), className="detail") if token.valid else html.Td(),
        ]
    )


def _deeds(token: TokenView) -> Component:
    rotation = [
        say_number("rotate-token", token.id, t("The old one stays good for, in hours"), 24, low=0, high=720),
        do(t("Yes, make another"), "rotate-token", token.id),
    ]
    anew = t("A new secret with the same name and scopes. The old one ends when its time is over.")
    over = t("It ends at once, and with it the sessions that were signed in to by it.")
    return html.Div(
        [
            ask_once(t("Rotate"), anew, html.Div(rotation)),
            ask_once(t("Revoke"), over, do(t("Yes, revoke it"), "revoke-token", token.id, tone="danger")),
        ],
        className="buttons deeds",
    )


def new_token() -> Component:
    """What it is for is the answer to the question."""
    answers = [do(t(what), "make-token", subject_of("token", scope), tone="") for scope, what in SCOPES.items()]
    fields = [
        say("make-token", "token", "name", t("Name"), holder=t("who or what uses it")),
        say("make-token", "token", "project", t("Project"), holder=t("of a trainer; empty: every one")),
        say_number("make-token", "token", t("Good for, in days"), None, low=0, hint=t("empty: until revoked")),
    ]
    words = t("Its secret is shown once. Choose what it is for: nobody can do more with it than that.")
    return ask_once(
        t("New token"), words, html.Div([*fields, html.Div(answers, className="buttons")]), tone="primary"
    )
