"""Links from messages. Looking changes nothing, since chats and mail look at links by themselves; posting acts."""

from __future__ import annotations

from datetime import datetime
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from rlvitals_monitor.api.deps import LiveDep, NowDep, StoreDep, check_wire, session_of
from rlvitals_monitor.api.form import read_form
from rlvitals_monitor.errors import NotFound, ServiceError
from rlvitals_monitor.links.act import act, look, voice_of
from rlvitals_monitor.links.offer import Offer, Standing
from rlvitals_monitor.links.page import HEADERS, Visitor, ask, refuse
from rlvitals_monitor.live import Live
from rlvitals_monitor.notify.language import Language
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.links import PATH

LOGIN = "/ui/login"
GONE = 410

router = APIRouter(include_in_schema=False)


@router.api_route(PATH + "{secret}", methods=["GET", "HEAD"])
def show(secret: str, request: Request, store: StoreDep, now: NowDep) -> Response:
    """What the link would do. A browser that comes from another site left our cookie behind, so it asks again."""
    try:
        with store.read() as conn:
            offer = look(conn, secret, now)
    except NotFound as error:
        return _page(refuse(""), error.status)
    visitor = _visitor(request, store, offer, now)
    again = (
        visitor.principal is None
        and request.headers.get("sec-fetch-site") == "cross-site"
        and "own" not in request.query_params
    )
    status = 200 if offer.standing in (Standing.OPEN, Standing.USED) else GONE
    return _page(ask(offer, visitor, _language(request, offer), now, again=again), status)


@router.post(PATH + "{secret}")
async def use(secret: str, request: Request, store: StoreDep, live: LiveDep, now: NowDep) -> Response:
    """Does it, once, and leads back to the page, which then says so."""
    reason = (await read_form(request)).get("reason", "")
    return await run_in_threadpool(_use, secret, reason, request, store, live, now)


def _use(secret: str, reason: str, request: Request, store: Store, live: Live, now: datetime) -> Response:
    language = Language.ENGLISH
    try:
        with store.read() as conn:
            offer = look(conn, secret, now)
        language = _language(request, offer)
        visitor = _visitor(request, store, offer, now)
        if offer.standing is not Standing.OPEN:
            return _page(ask(offer, visitor, language, now), 409)
        if visitor.voice is None:
            return RedirectResponse(visitor.sign_in, 303, HEADERS)
        check_wire(request)
        with store.begin() as conn:
            done = act(conn, secret, visitor.voice, reason, request.app.state.limits, now)
    except NotFound as error:
        return _page(refuse(""), error.status)
    except ServiceError as error:
        return _page(refuse(error.detail, language), error.status)
    if done.run is not None:
        live.publish(done.run.id)
    return RedirectResponse(PATH + secret, 303, HEADERS)


def _visitor(request: Request, store: Store, offer: Offer, now: datetime) -> Visitor:
    with store.read() as connection:
        principal = session_of(request, connection, now)
    voice = voice_of(offer, principal, request.app.state.settings.link_voices)
    return Visitor(principal=principal, voice=voice, sign_in=f"{LOGIN}?{urlencode({'next': request.url.path})}")


def _language(request: Request, offer: Offer) -> Language:
    channel = request.app.state.channel_book.channels.get(offer.link.channel)
    return Language.ENGLISH if channel is None else channel.language


def _page(html: str, status: int) -> HTMLResponse:
    return HTMLResponse(html, status, HEADERS)
