"""Whether a browser was tricked into asking, and what it may do with our answers.

Every request's Host is checked (DNS rebinding), what changes something must come from our own pages, and each
answer says that no script, style, frame or form but our own belongs to it.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
PROBES = frozenset({"/healthz", "/readyz"})
"""Asked by orchestrators under whatever address a container has; they tell nothing."""
POLICY = b"content-security-policy"
NOTHING = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
"""For whatever has no policy of its own: it shows itself, and nothing in it runs or loads."""
_HEADERS = {
    b"x-frame-options": b"DENY",
    b"x-content-type-options": b"nosniff",
    # Without any referrer a browser would post a form of ours with the origin "null", which is refused.
    b"referrer-policy": b"same-origin",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"permissions-policy": b"camera=(), microphone=(), geolocation=(), payment=(), usb=()",
    POLICY: NOTHING.encode(),
}


def page_policy(style: str) -> str:
    """For a page of ours without scripts whose one style sheet is ``style``."""
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'sha256-{digest}'; form-action 'self'; base-uri 'none'; "
        "frame-ancestors 'none'"
    )


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
            await self._app(scope, receive, _guarded(send) if scope["type"] == "http" else send)
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


def _guarded(send: Send) -> Send:
    """No other page may show ours in a frame, or a click on it could be a click on Approve."""

    async def guarded(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            own = list(message.get("headers", ()))
            said = {key.lower() for key, _ in own}
            message["headers"] = own + [(key, value) for key, value in _HEADERS.items() if key not in said]
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
