"""``rlvitals token``, ``user``, ``share`` and ``login-link``: for whoever has the service's own machine."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta

from sqlalchemy import Connection

from rlvitals.contract.access import Invitation, Role
from rlvitals_monitor.access import share_book, token_book, user_book
from rlvitals_monitor.access.login_link import ASKED_FOR, make_login_link
from rlvitals_monitor.auth import TOKEN_FILE, read_local_token
from rlvitals_monitor.control.local_store import command_line_user
from rlvitals_monitor.errors import BadRequest, NewerSchema, NotFound, ServiceError
from rlvitals_monitor.settings import Settings
from rlvitals_monitor.store import shares, tokens, users
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.users import User

Act = Callable[[Store, argparse.Namespace, datetime], None]
WRONG_ARGUMENT, NOT_DONE = 2, 1


def token(argv: Sequence[str], settings: Settings, now: datetime) -> int:
    """Access tokens: create or rotate one (its secret is shown once), list them, revoke one by its id."""
    parser = argparse.ArgumentParser(prog="rlvitals token", description=token.__doc__)
    actions = parser.add_subparsers(dest="action", required=True)
    create = actions.add_parser("create", help="make a token; prints its secret")
    create.add_argument("name", help="who will use it; stands in the audit")
    create.add_argument(
        "--scope",
        action="append",
        required=True,
        help="read, ingest, ingest:<project>, operate or admin; repeatable",
    )
    create.add_argument("--days", type=float, help="it expires after so long (default: never)")
    actions.add_parser("list", help="all tokens")
    rotate = actions.add_parser("rotate", help="a new secret for the same name and scopes; prints it")
    rotate.add_argument("id")
    grace = token_book.GRACE.total_seconds() / 3600
    rotate.add_argument(
        "--grace", type=float, default=grace, help=f"hours for which the old one is good ({grace:g})"
    )
    actions.add_parser("revoke", help="end a token at once").add_argument("id")
    acts = {"create": _create_token, "list": _list_tokens, "rotate": _rotate_token, "revoke": _revoke_token}
    return _run(acts, parser.parse_args(argv), settings, now)


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
    return _run(acts, parser.parse_args(argv), settings, now)


def share(argv: Sequence[str], settings: Settings, now: datetime) -> int:
    """Shared links: one run, for reading, for a while, for whoever has the link."""
    parser = argparse.ArgumentParser(prog="rlvitals share", description=share.__doc__)
    actions = parser.add_subparsers(dest="action", required=True)
    create = actions.add_parser("create", help="make a link; prints it")
    create.add_argument("run")
    create.add_argument(
        "--view", default="", help="what stands behind the run in its page's address: /texts?step=5"
    )
    create.add_argument("--hours", type=float, default=24.0, help="it expires after so long (24)")
    actions.add_parser("list", help="all links").add_argument("run", nargs="?", default="")
    actions.add_parser("revoke", help="end a link at once").add_argument("id")
    acts = {"create": _share_run, "list": _list_shares, "revoke": _revoke_share}
    return _run(acts, parser.parse_args(argv), settings, now)


def login_link(argv: Sequence[str], settings: Settings, now: datetime) -> int:
    """Prints a link that signs the owner of this service in, once."""
    parser = argparse.ArgumentParser(prog="rlvitals login-link", description=login_link.__doc__)
    minutes = ASKED_FOR.total_seconds() / 60
    parser.add_argument("--minutes", type=float, default=minutes, help=f"it is good for so long ({minutes:g})")
    return _run({"": _login_link}, parser.parse_args(argv), settings, now)


_ROLES = [role.value for role in Role]
_TO_A_PERSON: Mapping[str, str] = {
    "invite": "another link, also for a new password; prints it",
    "disable": "sign a person out everywhere, and let them in no more",
    "enable": "let a disabled person in again",
    "remove": "take a person out; the audit keeps the name",
}


def _run(acts: Mapping[str, Act], told: argparse.Namespace, settings: Settings, now: datetime) -> int:
    """0 when done, 1 where the service's rules refuse it, 2 for a wrong argument; why is on stderr."""
    settings.data_folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    store = Store(settings.store_url)
    try:
        store.migrate()
        told.settings = settings
        acts[getattr(told, "action", "")](store, told, now)
    except NewerSchema:
        raise
    except ServiceError as error:
        sys.stderr.write(f"rlvitals: {error}\n")
        return WRONG_ARGUMENT if isinstance(error, BadRequest) else NOT_DONE
    finally:
        store.close()
    return 0


def _create_token(store: Store, told: argparse.Namespace, now: datetime) -> None:
    lasts = None if told.days is None else _span(told.days, "days", "--days")
    with store.begin() as conn:
        secret, info = token_book.make(conn, told.name, told.scope, lasts, command_line_user(), now)
    _note(f"{info.id}: {', '.join(sorted(info.scopes))}")
    _print(secret)


def _list_tokens(store: Store, _told: argparse.Namespace, now: datetime) -> None:
    with store.read() as conn:
        for info in tokens.list_tokens(conn):
            used = "never used" if info.last_used_at is None else f"used {_at(info.last_used_at)}"
            state = _state(info.is_valid(now), info.revoked_at, info.expires_at)
            _print(
                f"{info.id}  {_at(info.created_at)}  {state}  {info.name}  {' '.join(sorted(info.scopes))}  {used}"
            )


def _rotate_token(store: Store, told: argparse.Namespace, now: datetime) -> None:
    grace = _span(told.grace, "hours", "--grace", zero=True)
    with store.begin() as conn:
        secret, info = token_book.rotate(conn, told.id, grace, command_line_user(), now)
    if token_book.keep_local(store, told.settings, told.id, secret):
        _note(f"{told.settings.home_folder / TOKEN_FILE} has the new one")
    _note(f"{info.id} takes the place of {told.id}, which ends in {told.grace:g} h")
    _print(secret)


def _revoke_token(store: Store, told: argparse.Namespace, now: datetime) -> None:
    with store.begin() as conn:
        token_book.revoke(conn, told.id, command_line_user(), now)
    _note(f"{told.id} is revoked")


def _add_user(store: Store, told: argparse.Namespace, now: datetime) -> None:
    with store.begin() as conn:
        invitation = user_book.add(conn, told.name, Role(told.role), command_line_user(), now)
    _show_invitation(invitation, told.settings)


def _list_users(store: Store, _told: argparse.Namespace, _now: datetime) -> None:
    with store.read() as conn:
        for one in users.list_users(conn):
            state = "disabled" if one.disabled_at else "invited" if one.password is None else "active"
            seen = "never seen" if one.seen_at is None else f"seen {_at(one.seen_at)}"
            _print(f"{one.id}  {_at(one.created_at)}  {state}  {one.role.value}  {one.name}  {seen}")


def _set_role(store: Store, told: argparse.Namespace, now: datetime) -> None:
    with store.begin() as conn:
        user_book.set_role(conn, _named(conn, told.name).id, Role(told.role), command_line_user(), now)
    _note(f"{told.name}: {told.role}")


def _invite(store: Store, told: argparse.Namespace, now: datetime) -> None:
    with store.begin() as conn:
        invitation = user_book.invite(conn, _named(conn, told.name).id, command_line_user(), now)
    _show_invitation(invitation, told.settings)


def _disable(store: Store, told: argparse.Namespace, now: datetime) -> None:
    with store.begin() as conn:
        user_book.set_disabled(conn, _named(conn, told.name).id, True, command_line_user(), now)
    _note(f"{told.name} is disabled, and signed out everywhere")


def _enable(store: Store, told: argparse.Namespace, now: datetime) -> None:
    with store.begin() as conn:
        user_book.set_disabled(conn, _named(conn, told.name).id, False, command_line_user(), now)
    _note(f"{told.name} may sign in again")


def _remove(store: Store, told: argparse.Namespace, now: datetime) -> None:
    with store.begin() as conn:
        user_book.remove(conn, _named(conn, told.name).id, command_line_user(), now)
    _note(f"{told.name} is removed")


def _share_run(store: Store, told: argparse.Namespace, now: datetime) -> None:
    lasts = _span(told.hours, "hours", "--hours")
    with store.begin() as conn:
        made = share_book.make(conn, told.run, told.view, lasts, command_line_user(), now)
    _note(f"{made.share.id}: good until {_at(made.share.expires_at)} UTC; it shows {told.run}, and nothing else")
    _print(_address(told.settings) + made.link)


def _list_shares(store: Store, told: argparse.Namespace, now: datetime) -> None:
    with store.read() as conn:
        for one in shares.list_shares(conn, told.run):
            state = _state(one.is_open(now), one.revoked_at, one.expires_at)
            used = "never used" if one.last_used_at is None else f"used {_at(one.last_used_at)}"
            _print(f"{one.id}  {_at(one.created_at)}  {state}  {one.run}{one.view}  {one.created_by}  {used}")


def _revoke_share(store: Store, told: argparse.Namespace, now: datetime) -> None:
    with store.begin() as conn:
        share_book.revoke(conn, told.id, command_line_user(), now)
    _note(f"{told.id} is revoked")


def _login_link(store: Store, told: argparse.Namespace, now: datetime) -> None:
    lasts = _span(told.minutes, "minutes", "--minutes")
    held = read_local_token(told.settings)
    if held is None:
        raise NotFound(f"there is no token in {told.settings.home_folder / TOKEN_FILE}: start the service first")
    link = make_login_link(store, held, command_line_user(), lasts, now)
    _print(_address(told.settings) + link)


def _named(conn: Connection, name: str) -> User:
    """Raises `NotFound`."""
    found = users.find_by_name(conn, name)
    if found is None:
        raise NotFound(f"there is no user {name!r}")
    return found


def _show_invitation(invitation: Invitation, settings: Settings) -> None:
    person, until = invitation.user, f"{_at(invitation.expires_at)} UTC"
    _note(f"{person.id}: {person.name}, {person.role.value}; the link works once, until {until}")
    _print(_address(settings) + invitation.link)


def _address(settings: Settings) -> str:
    """Where people reach the service: as it is set, else as the running service noted it for clients here."""
    if settings.public_url:
        return settings.public_url.rstrip("/")
    try:
        told = json.loads((settings.home_folder / TOKEN_FILE).read_bytes())
    except (FileNotFoundError, ValueError):
        return settings.url
    return str(told.get("url") or settings.url) if isinstance(told, dict) else settings.url


def _span(value: float, unit: str, option: str, *, zero: bool = False) -> timedelta:
    """Raises `BadRequest`."""
    try:
        span = timedelta(**{unit: value})
    except (ValueError, OverflowError):
        span = timedelta(-1)
    if not timedelta(0) <= span <= timedelta(days=3_650) or (not zero and not span):
        raise BadRequest(f"{option}: expected {unit} above 0 and at most ten years, got {value}")
    return span


def _state(valid: bool, revoked_at: datetime | None, expires_at: datetime | None) -> str:
    if revoked_at is not None:
        return f"revoked {_at(revoked_at)}"
    if expires_at is None:
        return "valid"
    return f"valid until {_at(expires_at)}" if valid else f"expired {_at(expires_at)}"


def _at(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M}"


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def _note(line: str) -> None:
    sys.stderr.write(f"{line}\n")
