"""People and what they may do, as administrators see them."""

from __future__ import annotations

from collections.abc import Sequence

from dash import html

from rlvitals.contract.access import MeView, Role, UserView
from rlvitals_dashboard.asking import ask_once, do, say, subject_of
from rlvitals_dashboard.components import LONGEST_NAME, Component, mark, visible, when
from rlvitals_dashboard.language import phrase, t
from rlvitals_dashboard.line_table import line_table
from rlvitals_dashboard.theme import Look

ROLES = {
    Role.VIEWER: Look(tone="idle", mark="○", word=phrase("Viewer")),
    Role.OPERATOR: Look(tone="info", mark="▶", word=phrase("Operator")),
    Role.ADMIN: Look(tone="warning", mark="◆", word=phrase("Administrator")),
}
MEANINGS = {
    Role.VIEWER: phrase("reads everything"),
    Role.OPERATOR: phrase("also acts: approves, silences, steers, shares"),
    Role.ADMIN: phrase("also decides who may come in, what is kept, and deletes runs"),
}
_INVITED = Look(tone="info", mark="…", word=phrase("Invited"))
_ACTIVE = Look(tone="good", mark="●", word=phrase("Active"))
_DISABLED = Look(tone="idle", mark="○", word=phrase("Disabled"))


def people_table(users: Sequence[UserView], me: MeView) -> Component:
    if not users:
        words = t(
            "Nobody yet: whoever is here came in by a token. Invite people, so that the audit has their names."
        )
        return html.P(words, className="quiet")
    names = (t("Name"), t("Role"), t("State"), t("Last seen"), html.Span(t("Deed"), className="unseen"))
    return line_table(t("People"), names, [_row(user, me) for user in users])


def user_look(user: UserView) -> Look:
    if user.disabled_at is not None:
        return _DISABLED
    return _INVITED if user.invited else _ACTIVE


def _row(user: UserView, me: MeView) -> Component:
    role, look = ROLES[user.role], user_look(user)
    myself = me.role is not None and user.name == me.name
    return html.Tr(
        [
            html.Td([html.B(visible(user.name, LONGEST_NAME)), f" ({t('you')})" if myself else ""]),
            html.Td(mark(role, words=t(role.word))),
            html.Td(mark(look, words=t(look.word))),
            html.Td(when(user.seen_at) if user.seen_at else t("never")),
            html.Td(None if myself else _deeds(user), className="detail"),
        ]
    )


def _deeds(user: UserView) -> Component:
    """Nobody takes away their own rights: one's own line has none."""
    others = [role for role in Role if role is not user.role]
    roles = [do(t(ROLES[role].word), "set-role", subject_of(user.id, role.value), tone="") for role in others]
    again = t("A new link at which they choose a password; older links are good no more.")
    gone = t("They are signed out everywhere. What they did keeps their name in the audit.")
    return html.Div(
        [
            ask_once(
                t("Change role"), t("It counts from their next click on."), html.Div(roles, className="buttons")
            ),
            ask_once(t("Invite anew"), again, do(t("Yes, make a link"), "invite", user.id)),
            _disabling(user),
            ask_once(t("Remove"), gone, do(t("Yes, remove them"), "remove-user", user.id, tone="danger")),
        ],
        className="buttons deeds",
    )


def _disabling(user: UserView) -> Component:
    if user.disabled_at is not None:
        return do(t("Let in again"), "enable-user", user.id, tone="")
    words = t("They are signed out everywhere and cannot come in until they are let in again.")
    return ask_once(t("Disable"), words, do(t("Yes, disable"), "disable-user", user.id))


def new_user() -> Component:
    answers = [do(t(ROLES[role].word), "add-user", subject_of("user", role.value), tone="") for role in Role]
    meanings = html.Ul(
        [html.Li([html.B(t(ROLES[r].word)), ": ", t(MEANINGS[r])]) for r in Role], className="meanings"
    )
    name = say("add-user", "user", "name", t("Name"), holder=t("as the audit shall have it"))
    words = t("You get a link to send them, good once. Choose what they may do:")
    act = html.Div([name, meanings, html.Div(answers, className="buttons")])
    return ask_once(t("Invite somebody"), words, act, tone="primary")
