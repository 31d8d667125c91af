"""Who is at the door of ``/ui/``: knows visitor and language for the callbacks, sends strangers to the sign-in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import quote

from rlvitals.contract.access import AccessKind
from rlvitals_dashboard.api import Api, ApiError, Forbidden, SignInNeeded, Visitor, visitor
from rlvitals_dashboard.language import choose, language

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Asgi = Callable[[Scope, Receive, Send], Awaitable[None]]

OPEN = (
    "login",
    "logout",
    "act/",
    "share/",
    "assets/",
    "bundle/",
    "charts/",
    "_dash-",
    "_favicon.ico",
    "_reload-hash",
)
"""Paths below the prefix that pass as they are: the sign-in, the links of messages, files that say nothing of any
run, and callbacks and charts, which ask the API as the visitor and show its refusal. All else is a page."""
SOCKET = "_dash-ws-callback"
POLICY_VIOLATION = 1008


class Gate:
    """Pure ASGI, so that the context variable reaches every task that serves the request."""

    def __init__(self, app: Asgi, *, api: Api, prefix: str) -> None:
        self._app, self._api, self._prefix = app, api, prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = str(scope.get("path", ""))
        if scope["type"] not in ("http", "websocket") or not f"{path}/".startswith(self._prefix):
            await self._app(scope, receive, send)
            return
        below = path[len(self._prefix) :]
        headers = _headers(scope)
        token = visitor.set(_visitor(scope))
        spoken = language.set(choose(headers.get("cookie", ""), headers.get("accept-language", ""), _query(scope)))
        try:
            if below.startswith(OPEN) and below != SOCKET:
                await self._app(scope, receive, send)
            elif (elsewhere := await self._elsewhere(below)) is not None:
                await _turn_away(elsewhere, scope, receive, send)
            elif scope["type"] == "websocket":
                await self._app(scope, receive, _until_over(send))
            else:
                await self._app(self._same_document(scope), receive, send)
        finally:
            language.reset(spoken)
            visitor.reset(token)

    def _same_document(self, scope: Scope) -> Scope:
        """Every page is one document; its script reads the address and asks for the content."""
        return {**scope, "path": self._prefix, "raw_path": self._prefix.encode()}

    async def _elsewhere(self, below: str) -> str | None:
        """Where to the visitor is sent instead: to the sign-in, or to the one run that their link shows."""
        try:
            me = await self._api.me()
        except (SignInNeeded, Forbidden):
            return f"{self._prefix}login"
        except ApiError:
            return None  # a person with trouble to see is better served by the page than by the sign-in notice
        if me.kind is not AccessKind.SHARE:
            return None if "read" in me.may else f"{self._prefix}login"
        page = f"run/{me.run}"
        if below in (SOCKET, page) or below.startswith(f"{page}/"):
            return None
        return f"{self._prefix}run/{quote(me.run, safe='')}{me.view}"


async def _turn_away(to: str, scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": POLICY_VIOLATION, "reason": "sign in first"})
    else:
        await _answer(send, 303, [(b"location", to.encode("ascii"))], b"")


def _until_over(send: Send) -> Send:
    """A socket ends with its session; the browser knocks again and gets in with the cookie of the next one."""
    who, closed = visitor.get(), False

    async def guarded(message: MutableMapping[str, Any]) -> None:
        nonlocal closed
        if closed:
            return
        await send(message)
        closed = message["type"] == "websocket.close"
        if who is not None and who.over.is_set() and message["type"] == "websocket.send":
            closed = True
            await send({"type": "websocket.close", "code": POLICY_VIOLATION, "reason": "the session is over"})

    return guarded


async def _answer(send: Send, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _query(scope: Scope) -> str:
    return bytes(scope.get("query_string", b"")).decode("latin-1")


def _headers(scope: Scope) -> dict[str, str]:
    return {k.decode("latin-1").lower(): v.decode("latin-1") for k, v in scope.get("headers", ())}


def _visitor(scope: Scope) -> Visitor:
    headers = _headers(scope)
    secure = scope.get("scheme") in ("https", "wss")
    return Visitor(
        cookie=headers.get("cookie", ""),
        host=headers.get("host", "localhost"),
        scheme="https" if secure else "http",
        client=str((scope.get("client") or ("127.0.0.1",))[0]),
    )
