"""Bounds on every request: how large its body may be, and how long its reader may take for a piece of the answer.

The routes that take reports and logs have larger bounds of their own and read their bodies in pieces. It must be
around whatever reads a body, the dashboard too, whose callbacks anybody may call.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import anyio
from starlette.exceptions import HTTPException

from rlvitals_monitor.logs import blank_secrets
from rlvitals_monitor.telemetry import Telemetry

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Asgi = Callable[[Scope, Receive, Send], Awaitable[None]]

BODY_BYTES_MAX = 4 << 20
"""Rule files are the largest that people send, logs aside."""
PIECE_S = 30.0
"""A reader that does not take one piece of an answer in so long has gone, or would hold memory for ever."""
IN_PIECES = frozenset({"/api/v1/reports", "/api/v1/import", "/api/v1/replay"})

log = logging.getLogger(__name__)


class ReaderTooSlow(ConnectionError):
    """The connection is closed; a page opens another and fetches what it missed."""


class RequestBounds:
    """ASGI middleware around the whole app, WebSockets included."""

    def __init__(
        self,
        app: Asgi,
        *,
        body_bytes: int = BODY_BYTES_MAX,
        piece_s: float = PIECE_S,
        telemetry: Telemetry | None = None,
    ) -> None:
        self._app, self._body_bytes, self._piece_s = app, body_bytes, piece_s
        self._telemetry = telemetry or Telemetry()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        if scope["type"] == "http" and scope["path"] not in IN_PIECES:
            if _told_length(scope) > self._body_bytes:
                await _refuse(send, self._body_bytes)
                return
            receive = self._counted(receive)
        is_socket = scope["type"] == "websocket"
        self._telemetry.sockets.inc(is_socket)
        try:
            await self._app(scope, receive, self._timed(send))
        except ReaderTooSlow:
            self._telemetry.dropped_readers.labels(scope["type"]).inc()
            where = blank_secrets(ascii(scope["path"]))
            log.warning("a reader of %s took no piece for %g s and was dropped", where, self._piece_s)
        finally:
            self._telemetry.sockets.dec(is_socket)

    def _counted(self, receive: Receive) -> Receive:
        """Bodies without a length are counted as they come."""
        got = 0

        async def counted() -> Message:
            nonlocal got
            message = await receive()
            got += len(message.get("body", b""))
            if got > self._body_bytes:
                raise HTTPException(413, f"expected a body of at most {self._body_bytes} bytes")
            return message

        return counted

    def _timed(self, send: Send) -> Send:
        async def timed(message: Message) -> None:
            try:
                with anyio.fail_after(self._piece_s):
                    await send(message)
            except TimeoutError:
                raise ReaderTooSlow from None

        return timed


def _told_length(scope: Scope) -> int:
    for name, value in scope["headers"]:
        if name == b"content-length":
            return int(value) if value.isdigit() else 0
    return 0


async def _refuse(send: Send, limit: int) -> None:
    told = {
        "type": "urn:rlvitals:problem:too-large",
        "title": "Content Too Large",
        "status": 413,
        "detail": f"expected a body of at most {limit} bytes",
    }
    headers = [(b"content-type", b"application/problem+json"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": 413, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps(told).encode()})
