"""Access tokens. Only their digests are stored."""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, insert, or_, select, update

from rlvitals_monitor.store import names
from rlvitals_monitor.store.numbers import from_micros, maybe_from_micros, maybe_to_micros, to_micros
from rlvitals_monitor.store.secret import digest, make_id, make_secret
from rlvitals_monitor.store.tables import tokens

PREFIX = "rlv_"
NAME_CHARS_MAX = 128
SCOPES_CHARS_MAX = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenInfo:
    """What may be shown of a token."""

    id: str
    name: str
    scopes: frozenset[str]
    created_at: datetime
    created_by: str = ""
    expires_at: datetime | None = None
    last_used_at: datetime | None = None
    revoked_at: datetime | None = None

    def is_valid(self, now: datetime) -> bool:
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


def make_token() -> str:
    """A new secret; nothing is stored yet."""
    return PREFIX + make_secret()


def register(
    connection: Connection,
    token: str,
    name: str,
    scopes: Iterable[str],
    now: datetime,
    *,
    by: str = "",
    expires_at: datetime | None = None,
) -> TokenInfo:
    """Stores a secret's digest, so that it is known from now on."""
    row = {
        "id": make_id(),
        "name": names.clean(name, NAME_CHARS_MAX),
        "digest": digest(token),
        "scopes": " ".join(sorted(scopes)),
        "created_at": to_micros(now),
        "created_by": names.clean(by, NAME_CHARS_MAX),
        "expires_at": maybe_to_micros(expires_at),
    }
    connection.execute(insert(tokens), row)
    return _info(connection.execute(select(tokens).where(tokens.c.id == row["id"])).one())


def find_token(connection: Connection, token: str) -> TokenInfo | None:
    """Whose a secret is; None when it is unknown. One that is over says so."""
    wanted = digest(token)
    row = connection.execute(select(tokens).where(tokens.c.digest == wanted)).one_or_none()
    return _info(row) if row is not None and hmac.compare_digest(row.digest, wanted) else None


def find_token_by_id(connection: Connection, token_id: str) -> TokenInfo | None:
    row = connection.execute(select(tokens).where(tokens.c.id == token_id)).one_or_none()
    return None if row is None else _info(row)


def list_tokens(connection: Connection) -> list[TokenInfo]:
    return [_info(row) for row in connection.execute(select(tokens).order_by(tokens.c.created_at, tokens.c.id))]


def revoke(connection: Connection, token_id: str, now: datetime) -> bool:
    """True when the token was valid until now."""
    at = to_micros(now)
    wanted = (
        (tokens.c.id == token_id)
        & tokens.c.revoked_at.is_(None)
        & or_(tokens.c.expires_at.is_(None), tokens.c.expires_at > at)
    )
    return connection.execute(update(tokens).where(wanted).values(revoked_at=at)).rowcount == 1


def end_at(connection: Connection, token_id: str, at: datetime) -> None:
    """The token expires at ``at``, or before where it would have done so anyhow."""
    micros = to_micros(at)
    later = or_(tokens.c.expires_at.is_(None), tokens.c.expires_at > micros)
    connection.execute(update(tokens).where((tokens.c.id == token_id) & later).values(expires_at=micros))


def note_uses(connection: Connection, used: Mapping[str, datetime]) -> None:
    """When each of the tokens was last used; never goes back, whichever process is late with its news."""
    for token_id, at in used.items():
        micros = to_micros(at)
        older = or_(tokens.c.last_used_at.is_(None), tokens.c.last_used_at < micros)
        connection.execute(update(tokens).where((tokens.c.id == token_id) & older).values(last_used_at=micros))


def _info(row: Row[Any]) -> TokenInfo:
    return TokenInfo(
        id=row.id,
        name=row.name,
        scopes=frozenset(row.scopes.split()),
        created_at=from_micros(row.created_at),
        created_by=row.created_by,
        expires_at=maybe_from_micros(row.expires_at),
        last_used_at=maybe_from_micros(row.last_used_at),
        revoked_at=maybe_from_micros(row.revoked_at),
    )
