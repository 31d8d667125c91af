"""Every failure as problem+json (RFC 9457): type, title, status, detail, and the field at fault."""

from __future__ import annotations

import logging
import math
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from sqlalchemy.exc import DataError, OperationalError
from starlette.exceptions import HTTPException

from rlvitals.contract import codec
from rlvitals.contract.codec import DecodeError
from rlvitals_monitor.errors import ServiceError, TooMany

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER_S = 2
TYPE_PREFIX = "urn:rlvitals:problem:"

log = logging.getLogger(__name__)

SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["type", "title", "status"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "field": {"type": "string", "description": "dotted path of what was wrong"},
    },
}


def problem(status: int, detail: str = "", *, kind: str = "", field: str = "") -> Response:
    body: dict[str, Any] = {
        "type": TYPE_PREFIX + kind if kind else "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
    }
    body |= {key: value for key, value in (("detail", detail), ("field", field)) if value}
    headers = {}
    if status == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        headers["Retry-After"] = str(RETRY_AFTER_S)
    return Response(codec.dumps(body), status, headers, MEDIA_TYPE)


def install(app: FastAPI) -> None:
    """Answers all failures of ``app`` so."""
    app.add_exception_handler(ServiceError, _service_error)
    app.add_exception_handler(DecodeError, _decode_error)
    app.add_exception_handler(RequestValidationError, _validation_error)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(DataError, _data_error)
    app.add_exception_handler(OperationalError, _database_error)
    app.add_exception_handler(Exception, _unknown_error)


def _service_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, ServiceError)
    answer = problem(error.status, error.detail, kind=error.kind, field=error.field)
    if isinstance(error, TooMany):
        answer.headers["Retry-After"] = str(math.ceil(error.retry_after_s))
    return answer


def _decode_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, DecodeError)
    return problem(422, str(error), kind="unreadable", field=error.field)


def _validation_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    field = ".".join(str(part) for part in first["loc"][1:])
    return problem(422, f"{field or 'body'}: {first['msg']}", kind="unreadable", field=field)


def _http_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    answer = problem(
        error.status_code, "" if error.detail == HTTPStatus(error.status_code).phrase else error.detail
    )
    answer.headers.update(error.headers or {})
    return answer


def _data_error(_request: Request, _error: Exception) -> Response:
    # NUL in a query, which PostgreSQL refuses to compare with anything.
    return problem(422, "a value that no text or number in the database can have", kind="unreadable")


def _database_error(_request: Request, error: Exception) -> Response:
    log.error("the database does not answer: %s", error.__cause__ or error)
    return problem(503, "the database does not answer; nothing was stored, send it again", kind="busy")


def _unknown_error(_request: Request, error: Exception) -> Response:
    log.error("an answer failed", exc_info=error)
    return problem(500, "the service failed at this request; its log has the reason", kind="internal")
