"""What an administrator does about who may come in and what is kept; each is one call and one answer."""

from __future__ import annotations

from dash import html

from rlvitals.contract.access import Invitation, Role
from rlvitals_dashboard.access_people import ROLES
from rlvitals_dashboard.api import Api
from rlvitals_dashboard.asking import parts_of
from rlvitals_dashboard.components import Component, notice, visible, when
from rlvitals_dashboard.language import counted, t, woven
from rlvitals_dashboard.retention_panel import KINDS
from rlvitals_dashboard.said import Said, number_of, words_of
from rlvitals_dashboard.shown_once import shown_once, whole_address

GRACE_H = 24.0
SHARE_H = 24.0
LONGEST_NAME = 128


async def make_token(api: Api, subject: str, said: Said) -> Component:
    scope, project = parts_of(subject)[1], words_of(said, "project")
    granted = f"{scope}:{project}" if project and scope == "ingest" else scope
    made = await api.make_token(words_of(said, "name"), [granted], number_of(said))
    return shown_once(t("The token is made."), made.secret)


async def rotate_token(api: Api, token: str, said: Said) -> Component:
    hours = number_of(said)
    made = await api.rotate_token(token, 3600.0 * (GRACE_H if hours is None else hours))
    return shown_once(t("The token has a new secret."), made.secret)


async def revoke_token(api: Api, token: str, _said: Said) -> Component:
    await api.revoke_token(token)
    return notice(t("Revoked."))


async def add_user(api: Api, subject: str, said: Said) -> Component:
    role = Role(parts_of(subject)[1])
    return _invited(await api.add_user(words_of(said, "name"), role))


async def invite(api: Api, user: str, _said: Said) -> Component:
    return _invited(await api.invite_user(user))


def _invited(made: Invitation) -> Component:
    name = html.B(visible(made.user.name, LONGEST_NAME))
    words = woven(
        "{name} chooses a password there; the link ends {moment}.", name=name, moment=when(made.expires_at)
    )
    return shown_once(t("Invited. Send them this link."), whole_address(made.link), html.Span(words))


async def set_role(api: Api, subject: str, _said: Said) -> Component:
    user, role = parts_of(subject)
    made = await api.set_role(user, Role(role))
    name = html.B(visible(made.name, LONGEST_NAME))
    return notice(t("From now on: {role}.", role=t(ROLES[made.role].word)), name)


async def disable_user(api: Api, user: str, _said: Said) -> Component:
    await api.set_disabled(user, True)
    return notice(t("Disabled, and signed out everywhere."))


async def enable_user(api: Api, user: str, _said: Said) -> Component:
    await api.set_disabled(user, False)
    return notice(t("Let in again."), tone="good")


async def remove_user(api: Api, user: str, _said: Said) -> Component:
    await api.remove_user(user)
    return notice(t("Removed."))


async def end_session(api: Api, session: str, _said: Said) -> Component:
    await api.end_session(session)
    return notice(t("Ended."))


async def end_sessions(api: Api, whose: str, _said: Said) -> Component:
    told = await api.end_sessions(everybody=whose == "everybody")
    return notice(counted(told.ended, "{count} session ended.", "{count} sessions ended."))


async def share(api: Api, subject: str, said: Said) -> Component:
    hours = number_of(said)
    made = await api.share(parts_of(subject)[0], words_of(said, "view"), SHARE_H if hours is None else hours)
    words = woven("It ends {moment}, or when it is taken back under Settings.", moment=when(made.share.expires_at))
    return shown_once(t("The link is made."), whole_address(made.link), html.Span(words))


async def revoke_share(api: Api, share: str, _said: Said) -> Component:
    await api.revoke_share(share)
    return notice(t("Taken back."))


async def choose_retention(api: Api, _subject: str, said: Said) -> Component:
    days = {kind: number_of(said, kind) for kind in KINDS}
    made = await api.choose_retention(words_of(said, "project"), days)
    whose = html.B(visible(made.project, LONGEST_NAME)) if made.project else t("every project")
    return notice(t("From now on it is kept so."), whose, tone="good")


async def take_retention_back(api: Api, subject: str, _said: Said) -> Component:
    await api.take_retention_back(parts_of(subject)[1])
    return notice(t("Taken back."))


DEEDS = {
    "make-token": make_token,
    "rotate-token": rotate_token,
    "revoke-token": revoke_token,
    "add-user": add_user,
    "invite": invite,
    "set-role": set_role,
    "disable-user": disable_user,
    "enable-user": enable_user,
    "remove-user": remove_user,
    "end-session": end_session,
    "end-sessions": end_sessions,
    "share": share,
    "revoke-share": revoke_share,
    "choose-retention": choose_retention,
    "take-retention-back": take_retention_back,
}
