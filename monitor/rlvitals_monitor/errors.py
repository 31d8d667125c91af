"""Failures that an answer to a client can name. Each knows its HTTP status and a stable kind."""

from __future__ import annotations


class ServiceError(Exception):
    """Becomes problem+json (RFC 9457): ``status``, ``kind`` (last part of its type), and the message as detail."""

    status = 500
    kind = "internal"

    def __init__(self, detail: str, *, field: str = "") -> None:
        self.detail, self.field = detail, field
        super().__init__(detail)


class BadRequest(ServiceError):
    """What was sent cannot be read; ``field`` says where."""

    status = 422
    kind = "unreadable"


class Unauthenticated(ServiceError):
    status = 401
    kind = "unauthenticated"


class Forbidden(ServiceError):
    status = 403
    kind = "forbidden"


class NotFound(ServiceError):
    status = 404
    kind = "not-found"


class Gone(ServiceError):
    """It was there, and somebody deleted it: the message says who, and when."""

    status = 410
    kind = "deleted"


class Conflict(ServiceError):
    """The thing is not in a state in which this can be done to it."""

    status = 409
    kind = "conflict"


class TooLarge(ServiceError):
    status = 413
    kind = "too-large"


class WrongMediaType(ServiceError):
    status = 415
    kind = "media-type"


class TooSlow(ServiceError):
    """What was sent did not arrive in time."""

    status = 408
    kind = "too-slow"


class TooMany(ServiceError):
    """Too many for now; ``retry_after_s`` says when to try again."""

    status = 429
    kind = "too-many"

    def __init__(self, detail: str, retry_after_s: float) -> None:
        self.retry_after_s = retry_after_s
        super().__init__(detail)


class StoreBusy(ServiceError):
    """The one writer of SQLite did not get its turn in time; nothing was stored, and a resend will do."""

    status = 503
    kind = "busy"

    def __init__(self, waited_s: float) -> None:
        super().__init__(f"the store was busy for {waited_s:g} s; nothing was stored, send it again")


class NewerSchema(ServiceError):
    """A newer version has brought the database up to date: to write to it as an older one would could harm it."""

    status = 503
    kind = "newer-schema"

    def __init__(self, found: str, known: str | None) -> None:
        super().__init__(
            f"the database is newer than this RL Vitals: its schema is {found}, and this version knows them up to "
            f"{known}. Upgrade RL Vitals, or name another database: --data, RLVITALS_DATA or RLVITALS_DATABASE_URL"
        )
