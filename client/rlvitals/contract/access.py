"""Who may come in: people, tokens, sessions of browsers, and shared links. Secrets are shown once, when made."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum


class Role(str, Enum):
    """What a person may do; the scopes of the same rank are ``read``, ``operate`` and ``admin``."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"


class AccessKind(str, Enum):
    """What somebody came in by."""

    USER = "user"
    TOKEN = "token"
    SHARE = "share"


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenView:
    """A token without its secret. ``valid``: neither revoked nor expired.

    ``last_used_at`` may lag by a minute. One that was rotated expires when its grace is over.
    """

    id: str
    name: str
    scopes: tuple[str, ...]
    created_at: datetime
    valid: bool
    created_by: str = ""
    expires_at: datetime | None = None
    last_used_at: datetime | None = None
    revoked_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeToken:
    """``secret`` is what a client shows; it is told here and never again."""

    token: TokenView
    secret: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UserView:
    """A person. ``invited`` until they chose a password; ``seen_at`` may lag by a minute."""

    id: str
    name: str
    role: Role
    created_at: datetime
    created_by: str
    invited: bool
    disabled_at: datetime | None = None
    seen_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Invitation:
    """``link`` is a path of this service, at which the person chooses a password; good once, until it expires."""

    user: UserView
    link: str
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionView:
    """A browser that is signed in: ``name`` is the user's, the token's, or the run's that a link shows.

    ``idle_at`` is when it ends if it stays unused, ``expires_at`` when it ends anyhow; ``own``: of who asks,
    ``current``: by which they ask.
    """

    id: str
    kind: AccessKind
    name: str
    agent: str
    created_at: datetime
    seen_at: datetime
    idle_at: datetime
    expires_at: datetime
    own: bool = False
    current: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedSessions:
    ended: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MeView:
    """Who asks. ``may`` are the scopes that are granted, with those that others imply.

    ``role`` is a user's. With a shared link ``run`` is the only one that may be seen, ``view`` what of it.
    """

    kind: AccessKind
    name: str
    may: tuple[str, ...]
    role: Role | None = None
    session: str = ""
    run: str = ""
    view: str = ""
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareView:
    """A link to one run, for reading. ``view`` is what stands behind the run in its page's address.

    ``open``: neither revoked nor expired.
    """

    id: str
    run: str
    view: str
    created_at: datetime
    created_by: str
    expires_at: datetime
    open: bool
    revoked_at: datetime | None = None
    last_used_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeShare:
    """``link`` is a path of this service; it is told here and never again."""

    share: ShareView
    link: str
