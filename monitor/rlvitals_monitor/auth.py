"""Who asks, and what they may.

Programs show a bearer token; a browser carries a cookie that is the secret of a session, which somebody signed in
to as a person, with a token, or by a shared link. It ends when that does.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from sqlalchemy import Connection

from rlvitals.contract.access import AccessKind, Role
from rlvitals_monitor.settings import Settings
from rlvitals_monitor.store import sessions, shares, tokens, users
from rlvitals_monitor.store.audit import append_audit
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.sessions import Session
from rlvitals_monitor.store.tokens import TokenInfo

READ, INGEST, OPERATE, ADMIN = "read", "ingest", "operate", "admin"
SCOPES = frozenset({READ, INGEST, OPERATE, ADMIN})
_IMPLIED = {
    ADMIN: frozenset({READ, INGEST, OPERATE, ADMIN}),
    OPERATE: frozenset({READ, OPERATE}),
}
SCOPE_OF = {Role.VIEWER: READ, Role.OPERATOR: OPERATE, Role.ADMIN: ADMIN}
COOKIE = "rlvitals_session"
SHARE_COOKIE = "rlvitals_share"
"""Of a shared link, beside the other, so that whoever follows one stays signed in."""
TOKEN_FILE = "token.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """Who asks. A scope is ``read``, ``ingest``, ``operate``, ``admin``, or ``ingest:<project>``.

    ``subject`` is the id of the token, user or share that ``kind`` says; ``session`` is empty for a bearer token.
    Who came by a shared link has no scope, and sees the one ``run``.
    """

    name: str
    scopes: frozenset[str]
    kind: AccessKind = AccessKind.TOKEN
    subject: str = ""
    session: str = ""
    role: Role | None = None
    run: str = ""
    view: str = ""
    expires_at: datetime | None = None

    def granted(self) -> frozenset[str]:
        """The scopes with those that they imply."""
        return frozenset(given for own in self.scopes for given in _IMPLIED.get(own, {own}))

    def may(self, scope: str) -> bool:
        """Whether any of the scopes grants ``scope``; ``ingest`` is granted by an ingest scope of any project."""
        granted = self.granted()
        return scope in granted or (scope == INGEST and any(g.startswith("ingest:") for g in granted))

    def may_ingest(self, project: str) -> bool:
        granted = self.granted()
        return INGEST in granted or f"{INGEST}:{project}" in granted


def check_scopes(scopes: Iterable[str]) -> frozenset[str]:
    """The scopes as a set; raises `ValueError` for one that does not exist."""
    wanted = frozenset(scopes)
    for scope in wanted:
        project = scope.removeprefix("ingest:")
        if scope not in SCOPES and (project == scope or not project or " " in project):
            raise ValueError(
                f"expected one of {', '.join(sorted(SCOPES))} or ingest:<project>, got {scope[:80]!r}"
            )
    if not wanted:
        raise ValueError("a token needs at least one scope")
    if len(" ".join(wanted)) > tokens.SCOPES_CHARS_MAX:
        raise ValueError(f"expected scopes of at most {tokens.SCOPES_CHARS_MAX} characters in all")
    return wanted


def principal_by_token(connection: Connection, token: str, now: datetime) -> Principal | None:
    info = tokens.find_token(connection, token)
    return None if info is None or not info.is_valid(now) else _of_token(info, "", info.expires_at)


def principal_by_cookie(connection: Connection, secret: str, now: datetime, idle: timedelta) -> Principal | None:
    """Whose session it is; None where it is unknown or over, or where the right to it is."""
    session = sessions.find(connection, secret)
    if session is None or not session.is_open(now, idle):
        return None
    return _BY_KIND[session.kind](connection, session, now)


def _by_token(connection: Connection, session: Session, now: datetime) -> Principal | None:
    info = tokens.find_token_by_id(connection, session.subject)
    return None if info is None or not info.is_valid(now) else _of_token(info, session.id, session.expires_at)


def _of_token(info: TokenInfo, session: str, expires_at: datetime | None) -> Principal:
    return Principal(name=info.name, scopes=info.scopes, subject=info.id, session=session, expires_at=expires_at)


def _by_user(connection: Connection, session: Session, _now: datetime) -> Principal | None:
    user = users.find(connection, session.subject)
    if user is None or user.disabled_at is not None:
        return None
    return Principal(
        name=user.name,
        scopes=frozenset({SCOPE_OF[user.role]}),
        kind=AccessKind.USER,
        subject=user.id,
        session=session.id,
        role=user.role,
        expires_at=session.expires_at,
    )


def _by_share(connection: Connection, session: Session, now: datetime) -> Principal | None:
    share = shares.find_by_id(connection, session.subject, now)
    if share is None or not share.open:
        return None
    return Principal(
        name=f"a shared link of {share.created_by}",
        scopes=frozenset(),
        kind=AccessKind.SHARE,
        subject=share.id,
        session=session.id,
        run=share.run,
        view=share.view,
        expires_at=share.expires_at,
    )


_BY_KIND = {AccessKind.TOKEN: _by_token, AccessKind.USER: _by_user, AccessKind.SHARE: _by_share}


def ensure_local_token(store: Store, settings: Settings, now: datetime) -> str:
    """The owner's token in ``<home>/token.json`` (0600), made on first start and known to this store.

    A token that the file already has, from another store of the same owner, is kept; one that is over is replaced.
    """
    token = read_local_token(settings)
    with store.begin() as connection:
        known = None if token is None else tokens.find_token(connection, token)
        if token is None or (known is not None and not known.is_valid(now)):
            token, known = tokens.make_token(), None
        if known is None:
            made = tokens.register(connection, token, "local", {ADMIN}, now, by="service")
            append_audit(connection, at=now, who="service", what="token created", detail=f"{made.id} local: admin")
    write_local_token(settings, token)
    return token


def write_local_token(settings: Settings, token: str) -> None:
    write_private(settings.home_folder / TOKEN_FILE, json.dumps({"url": settings.url, "token": token}).encode())


def read_local_token(settings: Settings) -> str | None:
    """The secret in the owner's file; None where there is no file of ours."""
    try:
        told = json.loads((settings.home_folder / TOKEN_FILE).read_bytes())
    except (FileNotFoundError, ValueError):
        return None
    token = told.get("token") if isinstance(told, dict) else None
    return token if isinstance(token, str) and token.startswith(tokens.PREFIX) else None


def write_private(path: Path, content: bytes) -> None:
    """Replaces a file that only its owner may read, at no moment half-written or readable by others."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    new = path.with_name(f"{path.name}.{secrets.token_hex(4)}.new")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    new.replace(path)
