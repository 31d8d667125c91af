"""What every router uses: the parts of the service, who asks, answers through the contract's codec, cursors."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from datetime import datetime, timezone
from types import GenericAlias
from typing import Annotated, Any, cast

import orjson
from fastapi import Depends, Path, Query, Request, Security
from fastapi.responses import Response
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import create_model

from rlvitals.contract import codec
from rlvitals_monitor import auth
from rlvitals_monitor.auth import Principal
from rlvitals_monitor.errors import BadRequest, Forbidden, NotFound, Unauthenticated
from rlvitals_monitor.live import Live
from rlvitals_monitor.store import deletion
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.names import RUN_ID

PAGE_DEFAULT, PAGE_MAX = 50, 500
_CURSOR_CHARS_MAX = 1_000

_bearer = HTTPBearer(auto_error=False, description="A token of `rlvitals token create`.")


class ContractResponse(Response):
    """Contract types as JSON by `codec.encode`: NaN and the infinities as words, where others would write null."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        plain = codec.encode(content)
        try:
            return orjson.dumps(plain)
        except TypeError:
            # Lone surrogates and integers beyond 64 bits, which orjson refuses.
            return codec.dumps(plain)


def get_store(request: Request) -> Store:
    return cast(Store, request.app.state.store)


def get_live(request: Request) -> Live:
    return cast(Live, request.app.state.live)


def utc_now() -> datetime:
    """The service's clock; tests override it."""
    return datetime.now(timezone.utc)


def require(scope: str) -> Callable[..., Principal]:
    """A dependency that answers who asks, or refuses: 401 without a token or session, 403 without ``scope``."""

    def principal(
        request: Request,
        store: Annotated[Store, Depends(get_store)],
        bearer: Annotated[HTTPAuthorizationCredentials | None, Security(_bearer)],
    ) -> Principal:
        who = _identify(request, store, bearer)
        if who is None:
            raise Unauthenticated(
                "send `Authorization: Bearer <token>`, or sign in by the link that the service printed"
            )
        if not who.may(scope):
            raise Forbidden(f"{who.name!r} lacks the scope {scope!r}")
        _refuse_deleted(request, store)
        return who

    return principal


def _refuse_deleted(request: Request, store: Store) -> None:
    """Raises `Gone` where the ``{run}`` of the path was deleted; to delete it again is no fault."""
    run = request.path_params.get("run")
    if run is not None and request.method != "DELETE":
        with store.read() as connection:
            deletion.refuse_deleted(connection, run)


def _identify(request: Request, store: Store, bearer: HTTPAuthorizationCredentials | None) -> Principal | None:
    if bearer is not None:
        with store.read() as connection:
            return auth.principal_by_token(connection, bearer.credentials)
    return session_of(request, store)


def session_of(request: Request, store: Store) -> Principal | None:
    """Who is signed in by cookie. Raises `Forbidden` where another site's page had the browser send it."""
    cookie = request.cookies.get(auth.COOKIE)
    if cookie is None:
        return None
    if request.method not in auth.SAFE_METHODS:
        fault = auth.origin_fault(dict(request.headers), needed=True)
        if fault:
            raise Forbidden(fault)
    with store.read() as connection:
        return auth.principal_by_cookie(connection, request.app.state.sessions, cookie)


def run_id(run: str) -> str:
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


def files(*kinds: str) -> dict[int | str, dict[str, Any]]:
    """The documented answer of what is no JSON: a text of one of these media types."""
    return {200: {"content": {kind: {"schema": {"type": "string"}} for kind in kinds}}}


StoreDep = Annotated[Store, Depends(get_store)]
LiveDep = Annotated[Live, Depends(get_live)]
NowDep = Annotated[datetime, Depends(utc_now)]
RunId = Annotated[str, Depends(run_id)]
AlertId = Annotated[str, Path(max_length=32)]
Reader = Annotated[Principal, Depends(require(auth.READ))]
Operator = Annotated[Principal, Depends(require(auth.OPERATE))]
Admin = Annotated[Principal, Depends(require(auth.ADMIN))]
Ingester = Annotated[Principal, Depends(require(auth.INGEST))]
Limit = Annotated[int, Query(ge=1, le=PAGE_MAX, description="items on one page")]
CursorQuery = Annotated[str, Query(max_length=_CURSOR_CHARS_MAX, description="`next` of the page before")]
