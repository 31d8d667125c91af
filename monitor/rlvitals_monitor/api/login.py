"""Sign-in by link: the token becomes a cookie and leaves the address bar; the link itself stays good."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import parse_qs

from fastapi import APIRouter, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from rlvitals_monitor.api.deps import StoreDep
from rlvitals_monitor.auth import COOKIE
from rlvitals_monitor.errors import TooLarge
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.tokens import find_token

HOME = "/ui/"
FORM_BYTES_MAX = 2_000
_HEADERS = {"Referrer-Policy": "no-referrer", "Cache-Control": "no-store"}
_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>RL Vitals: sign in</title>
<style>
:root {{ color-scheme: light dark }}
body {{ font: 16px/1.5 system-ui, sans-serif; display: grid; place-items: center; min-height: 90vh }}
main {{ max-width: 28rem; padding: 1.5rem }}
input, button {{ font: inherit; padding: .5rem .75rem; width: 100%; box-sizing: border-box }}
button {{ margin-top: .75rem; cursor: pointer }}
</style>
<main><h1>RL Vitals</h1><p>{words}</p>
<form method="post">
<label>Token <input name="token" type="password" autocomplete="current-password" required></label>
<button>Sign in</button>
</form></main></html>"""

router = APIRouter(include_in_schema=False)


@router.get("/ui/login")
def sign_in(request: Request, store: StoreDep, token: Annotated[str, Query(max_length=200)] = "") -> Response:
    """With a valid token: a session and the way to the pages. Otherwise a form."""
    if not token:
        return _page("Open the sign-in link that the service printed at its start, or paste a token.", 200)
    return _enter(request, store, token)


@router.post("/ui/login")
async def sign_in_by_form(request: Request, store: StoreDep) -> Response:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > FORM_BYTES_MAX:
            raise TooLarge(f"expected at most {FORM_BYTES_MAX} bytes")
    token = parse_qs(body.decode("ascii", "replace")).get("token", [""])[0]
    return await run_in_threadpool(_enter, request, store, token)


def _enter(request: Request, store: Store, token: str) -> Response:
    with store.read() as connection:
        info = find_token(connection, token)
    if info is None or info.revoked_at is not None:
        return _page("This token is unknown or was revoked. Paste another.", 403)
    sessions = request.app.state.sessions
    answer = RedirectResponse(HOME, 303, _HEADERS)
    answer.set_cookie(
        COOKIE,
        sessions.issue(info),
        max_age=sessions.max_age_s,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    return answer


@router.get("/ui/logout")
def sign_out() -> Response:
    answer = RedirectResponse("/ui/login", 303, _HEADERS)
    answer.delete_cookie(COOKIE, httponly=True, samesite="strict")
    return answer


def _page(words: str, status: int) -> HTMLResponse:
    return HTMLResponse(_PAGE.format(words=words), status, _HEADERS)
