"""``rlvitals user``, for whoever has the service's own machine."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy import Connection

from rlvitals.contract.access import Invitation, Role
from rlvitals_monitor.access import user_book
from rlvitals_monitor.access.terminal import address_of, at, note, run, show
from rlvitals_monitor.control.local_store import command_line_user
from rlvitals_monitor.errors import NotFound
from rlvitals_monitor.settings import Settings
from rlvitals_monitor.store import users
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.users import User


def user(argv: Sequence[str], settings: Settings, now: datetime) -> int:
    """People: add one (prints a link at which they choose a password), list, change, disable, remove."""
    parser = argparse.ArgumentParser(prog="rlvitals user", description=user.__doc__)
    actions = parser.add_subparsers(dest="action", required=True)
    add = actions.add_parser("add", help="a person; prints the link that invites them")
    add.add_argument("name")
    add.add_argument("--role", choices=_ROLES, default=Role.VIEWER.value)
    actions.add_parser("list", help="all people")
    role = actions.add_parser("role", help="what a person may do")
    role.add_argument("name")
    role.add_argument("role", choices=_ROLES)
    for action, about in _TO_A_PERSON.items():
        actions.add_parser(action, help=about).add_argument("name")
    acts = {
        "add": _add_user,
        "list": _list_users,
        "role": _set_role,
        "invite": _invite,
        "disable": _disable,
        "enable": _enable,
        "remove": _remove,
    }
    return run(acts, parser.parse_args(argv), settings, now)


_ROLES = [role.value for role in Role]
_TO_A_PERSON: Mapping[str, str] = {
    "invite": "another link, also for a new password; prints it",
    "disable": "sign a person out everywhere, and let them in no more",
    "enable": "let a disabled person in again",
    "remove": "take a person out; the audit keeps the name",
}


def _add_user(store: Store, told: argparse.Namespace, now: datetime) -> None:
    with store.begin() as conn:
        invitation = user_book.add(conn, told.name, Role(told.role), command_line_user(), now)
    _show_invitation(invitation, told.settings)


def _list_users(store: Store, _told: argparse.Namespace, _now: datetime) -> None:
    with store.read() as conn:
        for one in users.list_users(conn):
            state = "disabled" if one.disabled_at else "invited" if one.password is None else "active"
            seen = "never seen" if one.seen_at is None else f"seen {at(one.seen_at)}"
            show(f"{one.id}  {at(one.created_at)}  {state}  {one.role.value}  {one.name}  {seen}")


def _set_role(store: Store, told: argparse.Namespace, now: datetime) -> None:
    with store.begin() as conn:
        user_book.set_role(conn, _named(conn, told.name).id, Role(told.role), command_line_user(), now)
    note(f"{told.name}: {told.role}")


def _invite(store: Store, told: argparse.Namespace, now: datetime) -> None:
    with store.begin() as conn:
        invitation = user_book.invite(conn, _named(conn, told.name).id, command_line_user(), now)
    _show_invitation(invitation, told.settings)


def _disable(store: Store, told: argparse.Namespace, now: datetime) -> None:
    with store.begin() as conn:
        user_book.set_disabled(conn, _named(conn, told.name).id, True, command_line_user(), now)
    note(f"{told.name} is disabled, and signed out everywhere")


def _enable(store: Store, told: argparse.Namespace, now: datetime) -> None:
    with store.begin() as conn:
        user_book.set_disabled(conn, _named(conn, told.name).id, False, command_line_user(), now)
    note(f"{told.name} may sign in again")


def _remove(store: Store, told: argparse.Namespace, now: datetime) -> None:
    with store.begin() as conn:
        user_book.remove(conn, _named(conn, told.name).id, command_line_user(), now)
    note(f"{told.name} is removed")


def _named(conn: Connection, name: str) -> User:
    """Raises `NotFound`."""
    found = users.find_by_name(conn, name)
    if found is None:
        raise NotFound(f"there is no user {name!r}")
    return found


def _show_invitation(invitation: Invitation, settings: Settings) -> None:
    person, until = invitation.user, f"{at(invitation.expires_at)} UTC"
    note(f"{person.id}: {person.name}, {person.role.value}; the link works once, until {until}")
    show(address_of(settings) + invitation.link)
