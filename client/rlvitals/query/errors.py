"""What a service may answer instead of data. Each says what to do next."""

from __future__ import annotations

import json
from collections.abc import Mapping


class QueryError(Exception):
    """``status`` is HTTP's, 0 where nobody answered; ``field`` names what of the question was wrong."""

    def __init__(self, message: str, *, status: int = 0, field: str = "") -> None:
        self.status, self.field = status, field
        super().__init__(message)


class Refused(QueryError):
    """The token is missing, unknown, or has too few scopes."""


class NotThere(QueryError):
    """There is no such run, attempt or page."""


class Deleted(QueryError):
    """Somebody deleted the run; the message says who, and when."""


class Unreadable(QueryError):
    """The service does not understand the question; ``field`` says which part."""


class Unavailable(QueryError):
    """Nobody answers, or too much is asked at once: ask again, after ``retry_after_s`` where it is told."""

    def __init__(self, message: str, *, status: int = 0, retry_after_s: float | None = None) -> None:
        self.retry_after_s = retry_after_s
        super().__init__(message, status=status)


_KINDS: Mapping[int, type[QueryError]] = {
    401: Refused,
    403: Refused,
    404: NotThere,
    410: Deleted,
}


def error_of(status: int, headers: Mapping[str, str], body: bytes, url: str) -> QueryError:
    """What an answer without data means. Pure."""
    detail, field = _problem(body)
    said = f"{url} answers {status}: {detail}"
    if status == 429 or status >= 500:
        after = headers.get("retry-after", "")
        return Unavailable(said, status=status, retry_after_s=float(after) if after.isdecimal() else None)
    if 300 <= status < 400:
        return QueryError(f"{url} redirects elsewhere, which is not followed: check the url", status=status)
    if status == 401:
        said += "; set RLVITALS_TOKEN, or make a token with `rlvitals token create NAME --scope read`"
    return _KINDS.get(status, Unreadable)(said, status=status, field=field)


def _problem(body: bytes) -> tuple[str, str]:
    """(detail, field) of problem+json (RFC 9457), else how the body begins."""
    try:
        told = json.loads(body)
    except (ValueError, RecursionError):
        told = None
    if isinstance(told, dict) and isinstance(told.get("detail"), str):
        return told["detail"], str(told.get("field", ""))
    return body[:200].decode("utf-8", "replace"), ""
