"""Access tokens. Only their digests are stored; they are 256 random bits, so a plain SHA-256 is enough."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, insert, select, update

from rlvitals_monitor.store import names
from rlvitals_monitor.store.numbers import from_micros, to_micros
from rlvitals_monitor.store.tables import tokens

PREFIX = "rlv_"
NAME_CHARS_MAX = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenInfo:
    """What may be shown of a token."""

    id: str
    name: str
    scopes: frozenset[str]
    created_at: datetime
    revoked_at: datetime | None = None


def make_token() -> str:
    """A new secret; nothing is stored yet."""
    return PREFIX + secrets.token_urlsafe(32)


def register(connection: Connection, token: str, name: str, scopes: Iterable[str], now: datetime) -> TokenInfo:
    """Stores a secret's digest, so that it is known from now on."""
    row = {
        "id": secrets.token_hex(8),
        "name": names.clean(name, NAME_CHARS_MAX),
        "digest": _digest(token),
        "scopes": " ".join(sorted(scopes)),
        "created_at": to_micros(now),
    }
    connection.execute(insert(tokens), row)
    return _info(connection.execute(select(tokens).where(tokens.c.id == row["id"])).one())


def find_token(connection: Connection, token: str) -> TokenInfo | None:
    """Whose a secret is; None when it is unknown. A revoked one says so by ``revoked_at``."""
    digest = _digest(token)
    row = connection.execute(select(tokens).where(tokens.c.digest == digest)).one_or_none()
    return _info(row) if row is not None and hmac.compare_digest(row.digest, digest) else None


def find_token_by_id(connection: Connection, token_id: str) -> TokenInfo | None:
    row = connection.execute(select(tokens).where(tokens.c.id == token_id)).one_or_none()
    return None if row is None else _info(row)


def list_tokens(connection: Connection) -> list[TokenInfo]:
    return [_info(row) for row in connection.execute(select(tokens).order_by(tokens.c.created_at))]


def revoke(connection: Connection, token_id: str, now: datetime) -> bool:
    """True when the token was valid until now."""
    wanted = (tokens.c.id == token_id) & tokens.c.revoked_at.is_(None)
    return connection.execute(update(tokens).where(wanted).values(revoked_at=to_micros(now))).rowcount == 1


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def _info(row: Row[Any]) -> TokenInfo:
    return TokenInfo(
        id=row.id,
        name=row.name,
        scopes=frozenset(row.scopes.split()),
        created_at=from_micros(row.created_at),
        revoked_at=None if row.revoked_at is None else from_micros(row.revoked_at),
    )
