"""Links that let somebody in once: the holder of a token, or a person who was invited and chooses a password."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, select, update

from rlvitals_monitor.store.numbers import from_micros, maybe_from_micros, to_micros
from rlvitals_monitor.store.secret import digest, make_secret
from rlvitals_monitor.store.tables import entries
from rlvitals_monitor.store.words import storable

PATH = "/ui/login?entry="
KEPT = timedelta(days=7)
"""How long one that is used or expired is still known, so that its page can say so."""


class Purpose(str, Enum):
    """What ``subject`` is the id of: a token that signs in, or a user who was invited."""

    TOKEN = "token"
    INVITATION = "invitation"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    purpose: Purpose
    subject: str
    created_by: str
    created_at: datetime
    expires_at: datetime
    used_at: datetime | None = None

    def is_open(self, now: datetime) -> bool:
        return self.used_at is None and now < self.expires_at


def make(conn: Connection, purpose: Purpose, subject: str, by: str, now: datetime, lasts: timedelta) -> str:
    """The secret of a new link."""
    secret = make_secret()
    row = {
        "digest": digest(secret),
        "purpose": purpose.value,
        "subject": subject,
        "created_at": to_micros(now),
        "created_by": storable(by, 128),
        "expires_at": to_micros(now + lasts),
    }
    conn.execute(insert(entries), row)
    return secret


def find(conn: Connection, secret: str) -> Entry | None:
    row = conn.execute(select(entries).where(entries.c.digest == digest(secret))).one_or_none()
    return None if row is None else _entry(row)


def use(conn: Connection, secret: str, now: datetime) -> bool:
    """Takes the link's one use: of two who come at once, one wins."""
    at = to_micros(now)
    free = (entries.c.digest == digest(secret)) & entries.c.used_at.is_(None) & (entries.c.expires_at > at)
    return conn.execute(update(entries).where(free).values(used_at=at)).rowcount == 1


def withdraw(conn: Connection, purpose: Purpose, subject: str, now: datetime) -> None:
    """Uses up all that are open, so that only a newer one is good."""
    at = to_micros(now)
    these = (entries.c.purpose == purpose.value) & (entries.c.subject == subject) & entries.c.used_at.is_(None)
    conn.execute(update(entries).where(these).values(used_at=at))


def sweep(conn: Connection, now: datetime) -> int:
    """Forgets those that expired more than `KEPT` ago; how many."""
    return conn.execute(delete(entries).where(entries.c.expires_at <= to_micros(now - KEPT))).rowcount


def _entry(row: Row[Any]) -> Entry:
    return Entry(
        purpose=Purpose(row.purpose),
        subject=row.subject,
        created_by=row.created_by,
        created_at=from_micros(row.created_at),
        expires_at=from_micros(row.expires_at),
        used_at=maybe_from_micros(row.used_at),
    )
