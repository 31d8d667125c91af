"""Making, rotating and revoking tokens, audited."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from datetime import datetime, timedelta

from sqlalchemy import Connection

from rlvitals.contract.access import AccessKind, TokenView
from rlvitals_monitor.access.user_book import RESERVED
from rlvitals_monitor.auth import check_scopes, read_local_token, write_local_token
from rlvitals_monitor.errors import BadRequest, Conflict, NotFound
from rlvitals_monitor.settings import Settings
from rlvitals_monitor.store import sessions, tokens
from rlvitals_monitor.store.audit import append_audit
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.tokens import TokenInfo

GRACE = timedelta(hours=24)
"""A token that was rotated is good for so long, so that its clients can be given the new one."""


def make(
    conn: Connection, name: str, scopes: Iterable[str], lasts: timedelta | None, by: str, now: datetime
) -> tuple[str, TokenInfo]:
    """(the secret, the token). ``lasts``: None for ever. Raises `BadRequest`."""
    _check_name(name.strip())
    try:
        wanted = check_scopes(scopes)
    except ValueError as error:
        raise BadRequest(str(error), field="scopes") from None
    ends = None if lasts is None else now + lasts
    secret = tokens.make_token()
    info = tokens.register(conn, secret, name.strip(), wanted, now, by=by, expires_at=ends)
    said = f"{info.id} {info.name}: {' '.join(sorted(info.scopes))}" + (
        f", until {ends:%Y-%m-%d %H:%M} UTC" if ends else ""
    )
    append_audit(conn, at=now, who=by, what="token created", detail=said)
    return secret, info


def _check_name(name: str) -> None:
    """Raises `BadRequest` for a name by which the audit would say that somebody or something else did it."""
    if not name or not name.isprintable():
        raise BadRequest("expected a name of printable characters, which stands in the audit", field="name")
    if unicodedata.normalize("NFKC", name).casefold() in RESERVED:
        raise BadRequest(f"the name {name!r} is the service's own", field="name")


def rotate(conn: Connection, token_id: str, grace: timedelta, by: str, now: datetime) -> tuple[str, TokenInfo]:
    """A new secret for the same name and scopes; the old one ends after ``grace``. It lasts as long as that did.

    Raises `NotFound`, or `Conflict` for one that is over.
    """
    old = tokens.find_token_by_id(conn, token_id)
    if old is None:
        raise NotFound(f"there is no token {token_id[:64]!r}")
    if not old.is_valid(now):
        raise Conflict(f"the token {old.name!r} is over; make a new one")
    ends = None if old.expires_at is None else now + (old.expires_at - old.created_at)
    secret = tokens.make_token()
    info = tokens.register(conn, secret, old.name, old.scopes, now, by=by, expires_at=ends)
    tokens.end_at(conn, old.id, now + grace)
    said = f"{old.id} {old.name} by {info.id}; the old one ends after {grace.total_seconds():.0f} s"
    append_audit(conn, at=now, who=by, what="token rotated", detail=said)
    return secret, info


def revoke(conn: Connection, token_id: str, by: str, now: datetime) -> None:
    """It ends at once, and the sessions by it. Raises `NotFound`, or `Conflict` for one that is over."""
    info = tokens.find_token_by_id(conn, token_id)
    if info is None:
        raise NotFound(f"there is no token {token_id[:64]!r}")
    if not tokens.revoke(conn, token_id, now):
        raise Conflict(f"the token {info.name!r} is over already")
    sessions.end_of(conn, AccessKind.TOKEN, token_id, now)
    append_audit(conn, at=now, who=by, what="token revoked", detail=f"{info.id} {info.name}")


def keep_local(store: Store, settings: Settings, rotated: str, secret: str) -> bool:
    """Puts a new secret into the owner's file, where the file has the token that was ``rotated``."""
    held = read_local_token(settings)
    with store.read() as conn:
        known = None if held is None else tokens.find_token(conn, held)
    if known is None or known.id != rotated:
        return False
    write_local_token(settings, secret)
    return True


def view(info: TokenInfo, now: datetime) -> TokenView:
    return TokenView(
        id=info.id,
        name=info.name,
        scopes=tuple(sorted(info.scopes)),
        created_at=info.created_at,
        valid=info.is_valid(now),
        created_by=info.created_by,
        expires_at=info.expires_at,
        last_used_at=info.last_used_at,
        revoked_at=info.revoked_at,
    )
