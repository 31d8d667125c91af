"""``rlvitals token``, ``share`` and ``login-link``: for whoever has the service's own machine."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from datetime import datetime

from rlvitals_monitor.access import share_book, token_book
from rlvitals_monitor.access.login_link import ASKED_FOR, make_login_link
from rlvitals_monitor.access.terminal import address_of, at, note, run, show, span, state_of
from rlvitals_monitor.auth import TOKEN_FILE, read_local_token
from rlvitals_monitor.control.local_store import command_line_user
from rlvitals_monitor.errors import NotFound
from rlvitals_monitor.settings import Settings
from rlvitals_monitor.store import shares, tokens
from rlvitals_monitor.store.engine import Store


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
    return run(acts, parser.parse_args(argv), settings, now)


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
    return run(acts, parser.parse_args(argv), settings, now)


def login_link(argv: Sequence[str], settings: Settings, now: datetime) -> int:
    """Prints a link that signs the owner of this service in, once."""
    parser = argparse.ArgumentParser(prog="rlvitals login-link", description=login_link.__doc__)
    minutes = ASKED_FOR.total_seconds() / 60
    parser.add_argument("--minutes", type=float, default=minutes, help=f"it is good for so long ({minutes:g})")
    return run({"": _login_link}, parser.parse_args(argv), settings, now)


def _create_token(store: Store, told: argparse.Namespace, now: datetime) -> None:
    lasts = None if told.days is None else span(told.days, "days", "--days")
    with store.begin() as conn:
        secret, info = token_book.make(conn, told.name, told.scope, lasts, command_line_user(), now)
    note(f"{info.id}: {', '.join(sorted(info.scopes))}")
    show(secret)


def _list_tokens(store: Store, _told: argparse.Namespace, now: datetime) -> None:
    with store.read() as conn:
        for info in tokens.list_tokens(conn):
            used = "never used" if info.last_used_at is None else f"used {at(info.last_used_at)}"
            state = state_of(info.is_valid(now), info.revoked_at, info.expires_at)
            show(
                f"{info.id}  {at(info.created_at)}  {state}  {info.name}  {' '.join(sorted(info.scopes))}  {used}"
            )


def _rotate_token(store: Store, told: argparse.Namespace, now: datetime) -> None:
    grace = span(told.grace, "hours", "--grace", zero=True)
    with store.begin() as conn:
        secret, info = token_book.rotate(conn, told.id, grace, command_line_user(), now)
    if token_book.keep_local(store, told.settings, told.id, secret):
        note(f"{told.settings.home_folder / TOKEN_FILE} has the new one")
    note(f"{info.id} takes the place of {told.id}, which ends in {told.grace:g} h")
    show(secret)


def _revoke_token(store: Store, told: argparse.Namespace, now: datetime) -> None:
    with store.begin() as conn:
        token_book.revoke(conn, told.id, command_line_user(), now)
    note(f"{told.id} is revoked")


def _share_run(store: Store, told: argparse.Namespace, now: datetime) -> None:
    lasts = span(told.hours, "hours", "--hours")
    with store.begin() as conn:
        made = share_book.make(conn, told.run, told.view, lasts, command_line_user(), now)
    note(f"{made.share.id}: good until {at(made.share.expires_at)} UTC; it shows {told.run}, and nothing else")
    show(address_of(told.settings) + made.link)


def _list_shares(store: Store, told: argparse.Namespace, now: datetime) -> None:
    with store.read() as conn:
        for one in shares.list_shares(conn, now, told.run):
            state = state_of(one.open, one.revoked_at, one.expires_at)
            used = "never used" if one.last_used_at is None else f"used {at(one.last_used_at)}"
            show(f"{one.id}  {at(one.created_at)}  {state}  {one.run}{one.view}  {one.created_by}  {used}")


def _revoke_share(store: Store, told: argparse.Namespace, now: datetime) -> None:
    with store.begin() as conn:
        share_book.revoke(conn, told.id, command_line_user(), now)
    note(f"{told.id} is revoked")


def _login_link(store: Store, told: argparse.Namespace, now: datetime) -> None:
    lasts = span(told.minutes, "minutes", "--minutes")
    held = read_local_token(told.settings)
    if held is None:
        raise NotFound(f"there is no token in {told.settings.home_folder / TOKEN_FILE}: start the service first")
    link = make_login_link(store, held, command_line_user(), lasts, now)
    show(address_of(told.settings) + link)
