"""What every router uses: the parts of the service, who asks, answers through the contract's codec, cursors."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from datetime import datetime
from types import GenericAlias
from typing import Annotated, Any, cast

import orjson
from fastapi import Depends, Path, Query, Request, Security
from fastapi.responses import Response
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import create_model
from sqlalchemy import Connection

from rlvitals.contract import codec
from rlvitals.contract.access import AccessKind
from rlvitals_monitor import auth, clocks
from rlvitals_monitor.access.share_scope import share_may_read
from rlvitals_monitor.access.wire import unsafe_wire
from rlvitals_monitor.api.answer_language import told
from rlvitals_monitor.auth import Principal
from rlvitals_monitor.browser_guard import SAFE_METHODS, origin_fault
from rlvitals_monitor.errors import BadRequest, Forbidden, NotFound, Unauthenticated
from rlvitals_monitor.live import Live
from rlvitals_monitor.store import deletion
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.names import RUN_ID

PAGE_DEFAULT, PAGE_MAX = 50, 500
_CURSOR_CHARS_MAX = 1_000

BEARER = HTTPBearer(auto_error=False, description="A token of `rlvitals token create`.")


class ContractResponse(Response):
    """Contract types as JSON by `codec.encode`: NaN and the infinities as words, where others would write null."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        plain = told(codec.encode(content))
        try:
            return orjson.dumps(plain)
        except TypeError:
            # Lone surrogates and integers beyond 64 bits, which orjson refuses.
            return codec.dumps(plain)


# These are coroutines since the framework sends all others through a thread, where each waits for its turn.
async def get_store(request: Request) -> Store:
    return cast(Store, request.app.state.store)


async def get_live(request: Request) -> Live:
    return cast(Live, request.app.state.live)


async def utc_now() -> datetime:
    """The service's clock; tests override it."""
    return clocks.utc_now()


def require(scope: str) -> Callable[..., Principal]:
    """A dependency that answers who asks, or refuses: 401 without a token or session, 403 without ``scope``.

    An empty scope is had by everybody who is known.
    """

    def principal(
        request: Request,
        store: Annotated[Store, Depends(get_store)],
        bearer: Annotated[HTTPAuthorizationCredentials | None, Security(BEARER)],
        now: Annotated[datetime, Depends(utc_now)],
    ) -> Principal:
        with store.read() as connection:
            who = _identify(request, connection, bearer, now)
            if who is None:
                raise Unauthenticated(_stranger(request))
            if scope and not who.may(scope) and not (scope == auth.READ and _is_shared(request, who)):
                raise Forbidden(_lacks(who, scope))
            if scope in (auth.OPERATE, auth.ADMIN) and request.method not in SAFE_METHODS:
                check_wire(request)
            request.app.state.uses.note(who, now)
            _refuse_deleted(request, connection)
        return who

    return principal


def _refuse_deleted(request: Request, connection: Connection) -> None:
    """Raises `Gone` where the ``{run}`` of the path was deleted; to delete it again is no fault."""
    run = request.path_params.get("run")
    if run is not None and request.method != "DELETE":
        deletion.refuse_deleted(connection, run)


def _stranger(request: Request) -> str:
    if auth.COOKIE in request.cookies:
        return "this session is over: sign in again"
    if auth.SHARE_COOKIE in request.cookies:
        return "this shared link is over: it has expired or was revoked"
    return "send `Authorization: Bearer <token>`, or sign in by the link that the service printed"


def _lacks(who: Principal, scope: str) -> str:
    if who.kind is AccessKind.SHARE:
        return f"a shared link shows the run {who.run!r}, and nothing else"
    return f"{who.name!r} lacks the scope {scope!r}"


def _is_shared(request: Request, who: Principal) -> bool:
    if who.kind is not AccessKind.SHARE:
        return False
    path = getattr(request.scope.get("route"), "path", "")
    named = request.path_params.get("run", "")
    return share_may_read(who.run, path, request.method, named, request.query_params.getlist("run"))


def check_wire(request: Request) -> None:
    """Raises `Forbidden` where a command to a run, or a secret, would cross a network in the clear."""
    settings = request.app.state.settings
    if settings.is_local or settings.control_without_tls:
        return
    host = request.client.host if request.client is not None else ""
    if unsafe_wire(request.url.scheme, host):
        raise Forbidden(
            "this needs TLS, since the service can be reached from other machines: start it with --tls-cert and "
            "--tls-key, put a proxy with TLS before it, or set RLVITALS_CONTROL_WITHOUT_TLS=1"
        )


def _identify(
    request: Request, connection: Connection, bearer: HTTPAuthorizationCredentials | None, now: datetime
) -> Principal | None:
    if bearer is not None:
        return auth.principal_by_token(connection, bearer.credentials, now)
    return session_of(request, connection, now)


def session_of(request: Request, connection: Connection, now: datetime) -> Principal | None:
    """Who is signed in by cookie, else by a shared link. Raises as `sessions_of`."""
    return next(iter(sessions_of(request, connection, now)), None)


def sessions_of(request: Request, connection: Connection, now: datetime) -> tuple[Principal, ...]:
    """Whoever the browser is known as, the one who is signed in first.

    Raises `Forbidden` where another site's page had the browser send the cookie.
    """
    held = [c for name in (auth.COOKIE, auth.SHARE_COOKIE) if (c := request.cookies.get(name)) is not None]
    if not held:
        return ()
    if request.method not in SAFE_METHODS:
        fault = origin_fault(dict(request.headers), needed=True)
        if fault:
            raise Forbidden(fault)
    idle = request.app.state.settings.session_idle
    known = [auth.principal_by_cookie(connection, cookie, now, idle) for cookie in held]
    return tuple(who for who in known if who is not None)


async def run_id(run: str) -> str:
    """The ``{run}`` of a path; one that no run can have answers 404."""
    if RUN_ID.fullmatch(run) is None:
        raise NotFound(f"there is no run {run[:128]!r}")
    return run


def write_cursor(*parts: object) -> str:
    """An opaque cursor; `read_cursor` gives the parts back."""
    return base64.urlsafe_b64encode(codec.dumps(list(parts))).decode("ascii").rstrip("=")


def read_cursor(cursor: str, *kinds: type) -> tuple[Any, ...]:
    """The parts of a cursor of ours; raises `BadRequest` for any other."""
    try:
        if len(cursor) > _CURSOR_CHARS_MAX or not re.fullmatch(r"[A-Za-z0-9_-]*", cursor):
            raise ValueError
        parts = codec.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (ValueError, binascii.Error):
        raise BadRequest("expected a cursor from an earlier page", field="cursor") from None
    fits = isinstance(parts, list) and len(parts) == len(kinds)
    if not fits or not all(type(part) is kind for part, kind in zip(parts, kinds, strict=True)):
        raise BadRequest("expected a cursor from an earlier page", field="cursor")
    return tuple(parts)


def page_of(kind: type[Any]) -> Any:
    """The documented shape of a Page of ``kind``."""
    fields: dict[str, Any] = {"items": (GenericAlias(list, (kind,)), ...), "next": (str, "")}
    return create_model(f"{kind.__name__}Page", **fields)


StoreDep = Annotated[Store, Depends(get_store)]
LiveDep = Annotated[Live, Depends(get_live)]
NowDep = Annotated[datetime, Depends(utc_now)]
RunId = Annotated[str, Depends(run_id)]
AlertId = Annotated[str, Path(max_length=32)]
Anyone = Annotated[Principal, Depends(require(""))]
Reader = Annotated[Principal, Depends(require(auth.READ))]
Operator = Annotated[Principal, Depends(require(auth.OPERATE))]
Admin = Annotated[Principal, Depends(require(auth.ADMIN))]
Ingester = Annotated[Principal, Depends(require(auth.INGEST))]
Limit = Annotated[int, Query(ge=1, le=PAGE_MAX, description="items on one page")]
CursorQuery = Annotated[str, Query(max_length=_CURSOR_CHARS_MAX, description="`next` of the page before")]
