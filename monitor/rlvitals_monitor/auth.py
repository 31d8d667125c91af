"""Who asks, and whether a browser was tricked into asking.

Programs show a bearer token; people open a login link once and carry a signed cookie that names their token. Every
request's Host is checked (DNS rebinding), and what changes something by cookie must come from our own pages.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from itsdangerous import BadData, URLSafeTimedSerializer
from sqlalchemy import Connection

from rlvitals_monitor.settings import Settings
from rlvitals_monitor.store import tokens
from rlvitals_monitor.store.audit import append_audit
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.tokens import TokenInfo

READ, INGEST, OPERATE, ADMIN = "read", "ingest", "operate", "admin"
SCOPES = frozenset({READ, INGEST, OPERATE, ADMIN})
_IMPLIED = {
    ADMIN: frozenset({READ, INGEST, OPERATE, ADMIN}),
    OPERATE: frozenset({READ, OPERATE}),
}
COOKIE = "rlvitals_session"
TOKEN_FILE = "token.json"
KEY_FILE = "session.key"
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_HEADERS = [
    (b"x-frame-options", b"DENY"),
    (b"content-security-policy", b"frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
]
PROBES = frozenset({"/healthz", "/readyz"})
"""Asked by orchestrators under whatever address a container has; they tell nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """Who asks. A scope is ``read``, ``ingest``, ``operate``, ``admin``, or ``ingest:<project>``."""

    name: str
    scopes: frozenset[str]
    by_cookie: bool = False

    def may(self, scope: str) -> bool:
        """Whether any of the scopes grants ``scope``; ``ingest`` is granted by an ingest scope of any project."""
        granted = {given for own in self.scopes for given in _IMPLIED.get(own, {own})}
        return scope in granted or (scope == INGEST and any(g.startswith("ingest:") for g in granted))

    def may_ingest(self, project: str) -> bool:
        granted = {given for own in self.scopes for given in _IMPLIED.get(own, {own})}
        return INGEST in granted or f"{INGEST}:{project}" in granted


def check_scopes(scopes: Iterable[str]) -> frozenset[str]:
    """The scopes as a set; raises `ValueError` for one that does not exist."""
    wanted = frozenset(scopes)
    for scope in wanted:
        project = scope.removeprefix("ingest:")
        if scope not in SCOPES and (project == scope or not project or " " in project):
            raise ValueError(f"expected one of {', '.join(sorted(SCOPES))} or ingest:<project>, got {scope!r}")
    if not wanted:
        raise ValueError("a token needs at least one scope")
    return wanted


class Sessions:
    """Signed cookies that name a token by id: whoever revokes the token ends its sessions."""

    def __init__(self, key: bytes, hours: float) -> None:
        self.max_age_s = round(hours * 3600)
        self._serializer = URLSafeTimedSerializer(key, salt="rlvitals session")

    def issue(self, info: TokenInfo) -> str:
        return self._serializer.dumps(info.id)

    def read(self, cookie: str) -> str | None:
        """The token's id; None for a cookie that is not ours, was changed, or is too old."""
        try:
            told = self._serializer.loads(cookie, max_age=self.max_age_s)
        except BadData:
            return None
        return told if isinstance(told, str) else None


def principal_by_token(connection: Connection, token: str) -> Principal | None:
    return _principal(tokens.find_token(connection, token), by_cookie=False)


def principal_by_cookie(connection: Connection, sessions: Sessions, cookie: str) -> Principal | None:
    token_id = sessions.read(cookie)
    return None if token_id is None else _principal(tokens.find_token_by_id(connection, token_id), by_cookie=True)


def _principal(info: TokenInfo | None, *, by_cookie: bool) -> Principal | None:
    if info is None or info.revoked_at is not None:
        return None
    return Principal(name=info.name, scopes=info.scopes, by_cookie=by_cookie)


def ensure_local_token(store: Store, settings: Settings, now: datetime) -> str:
    """The owner's token in ``<home>/token.json`` (0600), made on first start and known to this store.

    A token that the file already has, from another store of the same owner, is kept; a revoked one is replaced.
    """
    path = settings.home_folder / TOKEN_FILE
    token = _read_token(path)
    with store.begin() as connection:
        known = None if token is None else tokens.find_token(connection, token)
        if token is None or (known is not None and known.revoked_at is not None):
            token, known = tokens.make_token(), None
        if known is None:
            made = tokens.register(connection, token, "local", {ADMIN}, now)
            append_audit(connection, at=now, who="service", what="token created", detail=f"{made.id} local: admin")
    write_private(path, json.dumps({"url": settings.url, "token": token}).encode())
    return token


def session_key(settings: Settings) -> bytes:
    """The key that signs session cookies, made on first start; 0600 in the data folder."""
    path = settings.data_folder / KEY_FILE
    try:
        return path.read_bytes()
    except FileNotFoundError:
        key = secrets.token_bytes(32)
        write_private(path, key)
        return key


def write_private(path: Path, content: bytes) -> None:
    """Replaces a file that only its owner may read, at no moment half-written or readable by others."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    new = path.with_name(f"{path.name}.{secrets.token_hex(4)}.new")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    new.replace(path)


def _read_token(path: Path) -> str | None:
    try:
        told = json.loads(path.read_bytes())
    except (FileNotFoundError, ValueError):
        return None
    token = told.get("token") if isinstance(told, dict) else None
    return token if isinstance(token, str) and token.startswith(tokens.PREFIX) else None


Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Asgi = Callable[[Scope, Receive, Send], Awaitable[None]]


class BrowserGuard:
    """Refuses what a browser sends for somebody else: a foreign Host, or a foreign Origin where it matters."""

    def __init__(self, app: Asgi, *, hosts: frozenset[str]) -> None:
        self._app, self._hosts = app, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        fault = "" if scope["type"] not in ("http", "websocket") else self._fault(scope)
        if not fault:
            await self._app(scope, receive, _unframed(send) if scope["type"] == "http" else send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008, "reason": fault})
        else:
            await _refuse(send, fault)

    def _fault(self, scope: Scope) -> str:
        headers = {key.decode("latin-1").lower(): value.decode("latin-1") for key, value in scope["headers"]}
        if scope["path"] in PROBES:
            return ""
        host = headers.get("host", "")
        if host_name(host) not in self._hosts:
            return (
                f"host {host_name(host)!r} is not one of this service; RLVITALS_ALLOWED_HOSTS names further ones"
            )
        changes = scope["type"] == "websocket" or scope["method"] not in SAFE_METHODS
        return origin_fault(headers, needed=False) if changes else ""


def _unframed(send: Send) -> Send:
    """No other page may show ours in a frame, or a click on it could be a click on Approve."""

    async def guarded(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", ()), *_HEADERS]
        await send(message)

    return guarded


def origin_fault(headers: MutableMapping[str, str], *, needed: bool) -> str:
    """Why a request that changes something is not from our own pages; empty when it is, or is from no browser.

    ``needed``: the request is signed by a cookie, which browsers attach by themselves, so it must say its origin.
    """
    if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return "this request was made by another site's page"
    origin = headers.get("origin")
    if origin is None:
        return "a request by cookie must carry its Origin" if needed else ""
    return "" if origin.partition("://")[2] == headers.get("host", "") else f"origin {origin[:200]!r} is foreign"


def host_name(host: str) -> str:
    """A Host header without its port."""
    name = host[: host.index("]") + 1] if host.startswith("[") and "]" in host else host.partition(":")[0]
    return name.lower()


async def _refuse(send: Send, detail: str) -> None:
    body = json.dumps({"type": "about:blank", "title": "Misdirected request", "status": 403, "detail": detail})
    headers = [(b"content-type", b"application/problem+json")]
    await send({"type": "http.response.start", "status": 403, "headers": headers})
    await send({"type": "http.response.body", "body": body.encode()})
