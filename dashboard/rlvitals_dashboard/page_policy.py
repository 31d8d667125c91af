"""What the dashboard's pages may load and run: our own files, and of inline scripts those that Dash writes itself.

Styles may stand inline, since Dash's components and plotly write theirs so; a style cannot send anything away, as
nothing may be loaded from elsewhere.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Asgi = Callable[[Scope, Receive, Send], Awaitable[None]]

HEADER = b"content-security-policy"
OWN = ("login", "logout", "act/", "share/")
"""Pages below the prefix that are not the dashboard's, and have a policy of their own."""


def policy(inline_scripts: Sequence[str]) -> str:
    """``inline_scripts``: the hashes of those that may run, as `Dash.csp_hashes` tells them."""
    return "; ".join(
        (
            "default-src 'none'",
            " ".join(("script-src 'self'", *inline_scripts)),
            "style-src 'self' 'unsafe-inline'",
            "img-src 'self' data: blob:",
            "font-src 'self' data:",
            "connect-src 'self'",
            "worker-src 'self'",
            "manifest-src 'self'",
            "form-action 'self'",
            "base-uri 'none'",
            "frame-ancestors 'none'",
        )
    )


class PagePolicy:
    """Pure ASGI: puts the policy on what the dashboard answers, also on its workers' scripts."""

    def __init__(self, app: Asgi, *, policy: str, prefix: str) -> None:
        self._app, self._prefix, self._header = app, prefix, (HEADER, policy.encode("ascii"))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = str(scope.get("path", ""))
        below = path.removeprefix(self._prefix)
        if scope["type"] != "http" or below == path or below.startswith(OWN):
            await self._app(scope, receive, send)
            return

        async def with_policy(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                rest = [(key, value) for key, value in message.get("headers", ()) if key.lower() != HEADER]
                message["headers"] = [*rest, self._header]
            await send(message)

        await self._app(scope, receive, with_policy)
