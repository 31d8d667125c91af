"""How the query API is asked: in one process the app itself, without a socket, else over HTTP.

It has no rights of its own: each call carries the session cookie of the person whose page asks (see `visitor`),
so what a person may not do by REST cannot be done here either, and the audit has the person's name.

    ApiError            what went wrong, in the service's own words
    ├─ SignInNeeded     401: no session, or it is over
    ├─ Forbidden        403: signed in, but without the right to do this
    ├─ NotFound         404, or 410: it was deleted
    ├─ Refused          409: not in the state in which this can be done
    └─ Unreachable      no answer at all
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from threading import Event
from types import TracebackType
from typing import Any, TypeVar
from urllib.parse import quote

import httpx2

from rlvitals.contract.codec import DecodeError, decode, dumps, loads
from rlvitals.contract.view import SeriesView
from rlvitals_dashboard.language import Language, language
from rlvitals_dashboard.shared_looks import SharedLooks

T = TypeVar("T")
W = TypeVar("W", bound="Wire")

TIMEOUT_S = 10.0


class ApiError(Exception):
    def __init__(self, title: str, detail: str = "") -> None:
        self.title, self.detail = title, detail
        super().__init__(f"{title}: {detail}" if detail else title)


class SignInNeeded(ApiError):
    pass


class Forbidden(ApiError):
    pass


class NotFound(ApiError):
    pass


class Refused(ApiError):
    pass


class Unreachable(ApiError):
    pass


_BY_STATUS = {401: SignInNeeded, 403: Forbidden, 404: NotFound, 409: Refused, 410: NotFound}


@dataclass(frozen=True, slots=True, kw_only=True)
class Visitor:
    """What of a person's request goes on to the API: who they are, from which address and under which they came.

    ``over`` is set as soon as the service no longer knows the person.
    """

    cookie: str = ""
    host: str = "localhost"
    scheme: str = "http"
    client: str = "127.0.0.1"
    over: Event = field(default_factory=Event, compare=False, repr=False)

    def headers(self) -> dict[str, str]:
        origin = f"{self.scheme}://{self.host}"
        return {"host": self.host, "origin": origin} | ({"cookie": self.cookie} if self.cookie else {})


visitor: ContextVar[Visitor | None] = ContextVar("rlvitals_visitor", default=None)
"""Set by `gate.Gate` for each request and each WebSocket; tasks that serve it inherit it."""


def _as_the_visitor(app: Any) -> Any:
    """In one process the service would take each call for one of this machine: it is told where the person is."""

    async def asked(scope: Any, receive: Any, send: Any) -> None:
        who = visitor.get()
        if who is not None:
            scope = {**scope, "scheme": who.scheme, "client": (who.client, 0)}
        await app(scope, receive, send)

    return asked


class Wire:
    """``of_app(app)`` in one process, ``of_url(url, token)`` else. The calls are in classes by topic."""

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self._client, self.looks = client, SharedLooks()

    @classmethod
    def of_app(cls: type[W], app: Any) -> W:
        transport = httpx2.ASGITransport(_as_the_visitor(app), raise_app_exceptions=False)
        return cls(httpx2.AsyncClient(transport=transport, base_url="http://localhost", timeout=TIMEOUT_S))

    @classmethod
    def of_url(cls: type[W], url: str, token: str) -> W:
        headers = {"authorization": f"Bearer {token}"}
        return cls(httpx2.AsyncClient(base_url=url, headers=headers, timeout=TIMEOUT_S))

    async def __aenter__(self: W) -> W:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._client.aclose()

    async def _get(self, path: str, *, timeout: float = TIMEOUT_S, **query: Any) -> Any:
        params = {k: v for k, v in query.items() if v not in (None, "")}
        return await self._send("GET", path, params=params, timeout=timeout)

    async def _post(
        self, path: str, body: Mapping[str, Any], *, method: str = "POST", timeout: float = TIMEOUT_S
    ) -> Any:
        headers = {"content-type": "application/json"}
        return await self._send(method, path, content=dumps(body), headers=headers, timeout=timeout)

    async def _send(self, method: str, path: str, **options: Any) -> Any:
        who = visitor.get()
        headers = (who.headers() if who else {}) | options.pop("headers", {})
        if language.get() is not Language.ENGLISH:
            headers["accept-language"] = language.get().value
        try:
            answer = await self._client.request(method, f"/api/v1{path}", headers=headers, **options)
        except httpx2.TransportError as error:
            raise Unreachable("The service does not answer", str(error)) from error
        if answer.status_code == 401 and who is not None:
            who.over.set()
        if answer.status_code >= 400:
            raise _refusal(answer)
        if answer.status_code == 204:
            return None
        try:
            return loads(answer.content)
        except DecodeError as error:
            raise ApiError("The service's answer cannot be read", str(error)) from error


def _refusal(answer: httpx2.Response) -> ApiError:
    try:
        problem = loads(answer.content)
    except DecodeError:
        problem = {}
    if not isinstance(problem, dict):
        problem = {}
    title = str(problem.get("title") or f"The service answered {answer.status_code}")
    kind: type[ApiError] = _BY_STATUS.get(answer.status_code, ApiError)
    return kind(title, str(problem.get("detail") or ""))


def one(kind: type[T], body: Any) -> T:
    try:
        return decode(kind, body)
    except DecodeError as error:
        raise ApiError("The service's answer cannot be read", str(error)) from error


def items(kind: type[T], body: Any) -> tuple[T, ...]:
    """A plain list, or a page of one."""
    rows = body.get("items", ()) if isinstance(body, Mapping) else body
    return tuple(one(kind, row) for row in rows)


def series(body: Any) -> tuple[SeriesView, ...]:
    """As `items`, with the columns taken whole where all of their numbers are plain."""
    return tuple(_series(row) for row in body) if isinstance(body, list) else items(SeriesView, body)


def _series(row: Any) -> SeriesView:
    columns = {name: row.get(name, []) for name in _COLUMNS} if isinstance(row, dict) else {}
    if not columns or not all(_is_plain(columns[name], kinds) for name, kinds in _COLUMNS.items()):
        return one(SeriesView, row)
    frame = one(SeriesView, {**row, **dict.fromkeys(columns, ())})
    taken: dict[str, Any] = {name: tuple(column) for name, column in columns.items()}
    return replace(frame, **taken)


def _is_plain(column: Any, kinds: frozenset[Any]) -> bool:
    return isinstance(column, list) and kinds.issuperset(map(type, column))


_STEPS, _VALUES, _PERHAPS = frozenset({int}), frozenset({float}), frozenset({float, type(None)})
_COLUMNS: Mapping[str, frozenset[Any]] = {
    "step": _STEPS,
    "value": _VALUES,
    "low": _PERHAPS,
    "high": _PERHAPS,
    "nan": _STEPS,
    "pos_inf": _STEPS,
    "neg_inf": _STEPS,
}


def segment(text: str) -> str:
    return quote(text, safe="")
