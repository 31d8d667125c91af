"""Sign-in by link: the token becomes a cookie and leaves the address bar; the link itself stays good."""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from rlvitals_monitor.api.deps import StoreDep, utc_now
from rlvitals_monitor.api.form import read_form
from rlvitals_monitor.auth import COOKIE
from rlvitals_monitor.store.audit import append_audit
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.links import PATH, SECRET
from rlvitals_monitor.store.tokens import find_token

HOME = "/ui/"
# A page of ours and nothing else: whoever signs in is led nowhere but here.
_ONWARD = re.compile(rf"{re.escape(PATH)}{SECRET.pattern}")
# Without any referrer a browser would post the form with the origin "null", which is refused.
_HEADERS = {"Referrer-Policy": "same-origin", "Cache-Control": "no-store"}
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
def sign_in(
    request: Request,
    store: StoreDep,
    token: Annotated[str, Query(max_length=200)] = "",
    onward: Annotated[str, Query(alias="next", max_length=200)] = "",
) -> Response:
    """With a valid token: a session and the way to the pages, or back to the link that led here. Else a form."""
    if not token:
        return _page("Open the sign-in link that the service printed at its start, or paste a token.", 200)
    return _enter(request, store, token, onward)


@router.post("/ui/login")
async def sign_in_by_form(
    request: Request, store: StoreDep, onward: Annotated[str, Query(alias="next", max_length=200)] = ""
) -> Response:
    token = (await read_form(request)).get("token", "")
    return await run_in_threadpool(_enter, request, store, token, onward)


def _enter(request: Request, store: Store, token: str, onward: str) -> Response:
    with store.read() as connection:
        info = find_token(connection, token)
    if info is None or info.revoked_at is not None:
        return _page("This token is unknown or was revoked. Paste another.", 403)
    with store.begin() as connection:
        append_audit(connection, at=utc_now(), who=info.name, what="signed in", detail=f"with token {info.id}")
    sessions = request.app.state.sessions
    answer = RedirectResponse(onward if _ONWARD.fullmatch(onward) else HOME, 303, _HEADERS)
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
