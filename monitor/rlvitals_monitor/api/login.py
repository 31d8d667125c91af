"""The pages of the door: signing in by name, by token, by a link that works once, by a proxy; signing out."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from importlib.resources import files
from typing import Annotated

from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup
from sqlalchemy import Connection

from rlvitals_monitor.access import door
from rlvitals_monitor.access.door import Caller
from rlvitals_monitor.access.password import CHARS_MIN
from rlvitals_monitor.access.vouching import SECRET_HEADER, Claim
from rlvitals_monitor.api.deps import NowDep, StoreDep, sessions_of
from rlvitals_monitor.api.door_words import language_of, sentence, words_in
from rlvitals_monitor.api.form import read_form
from rlvitals_monitor.auth import COOKIE, SHARE_COOKIE
from rlvitals_monitor.browser_guard import origin_fault, page_policy
from rlvitals_monitor.errors import BadRequest, ServiceError, TooMany, Unauthenticated
from rlvitals_monitor.store import entries, users
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.entries import Purpose
from rlvitals_monitor.store.links import PATH, SECRET
from rlvitals_monitor.store.users import User

HOME = "/ui/"
LOGIN = "/ui/login"
# A page of ours and nothing else: whoever signs in is led nowhere but here.
_ONWARD = re.compile(rf"{re.escape(PATH)}{SECRET.pattern}")
HASHES_AT_ONCE = 2
"""Each takes 19 MiB and a core for a moment."""
_HERE = files("rlvitals_monitor.api")
_STYLE = (_HERE / "login.css").read_text("utf-8")
_TEMPLATES = Environment(autoescape=True, undefined=StrictUndefined)
# What is put into the sentence is escaped, unless it is markup already.
_TEMPLATES.filters["markup"] = lambda words, **values: Markup(words).format(**values)
_PAGE = _TEMPLATES.from_string((_HERE / "login.html").read_text("utf-8"))
HEADERS = {
    "Content-Security-Policy": page_policy(_STYLE),
    # Without any referrer a browser would post the form with the origin "null", which is refused.
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_MISPLACED = "A token has no place in an address, where others may read it: paste it here."
_LEAD = "Sign in by the link that the service printed at its start, or make another: rlvitals login-link"

router = APIRouter(include_in_schema=False)

Onward = Annotated[str, Query(alias="next", max_length=200)]


@router.get(LOGIN)
def sign_in(
    request: Request,
    store: StoreDep,
    now: NowDep,
    entry: Annotated[str, Query(max_length=200)] = "",
    token: Annotated[str, Query(max_length=200)] = "",
    onward: Onward = "",
    left: bool = False,
) -> Response:
    """A form. A link that works once gives a session at once, or lets who was invited choose a password; so does a
    proxy that has signed somebody in, but to who has just ``left``.
    """
    if token:
        words = words_in(language_of(request))(_MISPLACED)
        return _forms(request, store, words, 400)
    caller, claim = caller_of(request), _claim_of(request)
    if not entry and (claim is None or left or _is_looked_at_beforehand(request)):
        return _forms(request, store)
    try:
        if not entry and claim is not None:
            secret = request.app.state.settings.proxy_secret
            return _let_in(request, store, door.enter_by_proxy(store, claim, secret, caller, now), onward, now)
        _, person = door.find_entry(store, entry, caller, now)
        if person is not None:
            return _page(request, title="welcome", words="You were invited.", person=person.name, entry=entry)
        if _is_looked_at_beforehand(request):
            return _page(request, title="sign in", words="This link signs you in, once.", entry=entry)
        return _let_in(request, store, door.enter_by_link(store, entry, caller, now), onward, now)
    except ServiceError as error:
        return _refused(request, store, error, "", now)


@router.post(LOGIN)
async def sign_in_by_form(request: Request, store: StoreDep, now: NowDep, onward: Onward = "") -> Response:
    told, caller = await read_form(request), caller_of(request)
    enter = _way_in(told, store, caller, now)
    try:
        secret = await to_thread.run_sync(enter, limiter=_limiter(request))
    except ServiceError as error:
        return await run_in_threadpool(_refused, request, store, error, told.get("entry", ""), now)
    return await run_in_threadpool(_let_in, request, store, secret, onward, now)


@router.get("/ui/logout")
def sign_out(request: Request, store: StoreDep, now: NowDep) -> Response:
    """The session ends here, not only in the browser. Another site's page cannot bring it about."""
    named = request.app.state.settings.proxy_user_header
    answer = RedirectResponse(f"{LOGIN}?left=1" if named else LOGIN, 303, HEADERS)
    if origin_fault(dict(request.headers), needed=False):
        return answer
    with store.read() as connection:
        known = sessions_of(request, connection, now)
    for who in known:
        door.leave(store, who, now)
    for name in (COOKIE, SHARE_COOKIE):
        answer.delete_cookie(name, httponly=True, samesite="strict")
    return answer


def _claim_of(request: Request) -> Claim | None:
    """What a proxy says of who asks; None where it says nothing, or none is trusted."""
    header = request.app.state.settings.proxy_user_header
    names = request.headers.getlist(header) if header else []
    return Claim(names=names, secrets=request.headers.getlist(SECRET_HEADER)) if names else None


def caller_of(request: Request) -> Caller:
    host = request.client.host if request.client is not None else "unknown"
    agent = request.headers.get("user-agent", "")
    return Caller(host=host[:64], agent=agent, lasts=request.app.state.settings.session_lasts)


def set_cookie(request: Request, answer: Response, name: str, secret: str, lasts_s: float) -> None:
    answer.set_cookie(
        name,
        secret,
        max_age=round(lasts_s),
        httponly=True,
        # A shared link is followed from chats and mail, and shows only what anybody with the link may see.
        samesite="lax" if name == SHARE_COOKIE else "strict",
        secure=request.url.scheme == "https",
    )


def _way_in(told: dict[str, str], store: Store, caller: Caller, now: datetime) -> Callable[[], str]:
    """What the form asks for; answers the secret of the new session."""
    if "entry" in told and "password" in told:
        return partial(_choose_password, store, told, caller, now)
    if "entry" in told:
        return partial(door.enter_by_link, store, told["entry"], caller, now)
    if "name" in told:
        return partial(door.enter_by_password, store, told["name"], told.get("password", ""), caller, now)
    return partial(door.enter_by_token, store, told.get("token", ""), caller, now)


def _choose_password(store: Store, told: dict[str, str], caller: Caller, now: datetime) -> str:
    if told["password"] != told.get("again", ""):
        raise BadRequest("the two passwords differ", field="again")
    return door.enter_by_invitation(store, told["entry"], told["password"], caller, now)


def _let_in(request: Request, store: Store, secret: str, onward: str, now: datetime) -> Response:
    """The browser's earlier session ends: a socket that is open by it would act for whom one is no more."""
    before = request.cookies.get(COOKIE)
    if before is not None:
        door.replace(store, before, now)
    answer = RedirectResponse(onward if _ONWARD.fullmatch(onward) else HOME, 303, HEADERS)
    lasts: timedelta = request.app.state.settings.session_lasts
    set_cookie(request, answer, COOKIE, secret, lasts.total_seconds())
    return answer


def _refused(request: Request, store: Store, error: ServiceError, entry: str, now: datetime) -> Response:
    """The form again, with what was wrong; the one of an invitation while that is still good."""
    with store.read() as conn:
        invited = user_of_entry(conn, entry, now) if isinstance(error, BadRequest) and entry else None
    status = 403 if isinstance(error, Unauthenticated) else error.status
    words = sentence(error.detail, language_of(request))
    if invited is not None:
        answer = _page(
            request,
            status,
            title="welcome",
            words="You were invited.",
            person=invited.name,
            entry=entry,
            fault=words,
        )
    else:
        answer = _forms(request, store, words, status)
    if isinstance(error, TooMany):
        answer.headers["Retry-After"] = str(math.ceil(error.retry_after_s))
    return answer


def user_of_entry(conn: Connection, secret: str, now: datetime) -> User | None:
    """Whom an invitation that is still open is for."""
    found = entries.find(conn, secret)
    if found is None or found.purpose is not Purpose.INVITATION or not found.is_open(now):
        return None
    return users.find(conn, found.subject)


def _forms(request: Request, store: Store, fault: str = "", status: int = 200) -> HTMLResponse:
    with store.read() as conn:
        people = users.is_any(conn)
    return _page(request, status, title="sign in", words=_LEAD, forms=True, people=people, fault=fault)


def message_page(request: Request, title: str, words: str, status: int) -> HTMLResponse:
    language = language_of(request)
    say = words_in(language)
    return _page(request, status, title=title, words=sentence(title, language), fault=say(words))


def _page(request: Request, status: int = 200, *, title: str, words: str, **shown: object) -> HTMLResponse:
    """``title`` and ``words`` are ours, in English; what else is shown is shown as it is."""
    language = language_of(request)
    say = words_in(language)
    empty: dict[str, object] = dict.fromkeys(("fault", "person", "entry", "forms", "people"), "")
    told = {"lang": language.value, "say": say, "title": say(title), "words": say(words)}
    html = _PAGE.render(empty | {"style": Markup(_STYLE), "chars": CHARS_MIN} | told | shown)
    return HTMLResponse(html, status, HEADERS)


def _is_looked_at_beforehand(request: Request) -> bool:
    """A browser that loads a page in case it is wanted shall not use the link up."""
    told = f"{request.headers.get('sec-purpose', '')} {request.headers.get('purpose', '')}"
    return "prefetch" in told or "prerender" in told


def _limiter(request: Request) -> CapacityLimiter:
    state = request.app.state
    if not hasattr(state, "hash_limiter"):
        state.hash_limiter = CapacityLimiter(HASHES_AT_ONCE)
    limiter: CapacityLimiter = state.hash_limiter
    return limiter
