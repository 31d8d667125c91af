"""Links that act once, for messages. Whoever has one may do one thing, once, until it expires.

A link is 256 random bits, of which only a digest is stored: it cannot be guessed, nor made from a copy of the
database. It is bound to what it acts on as that was when the link was made (`fingerprint`).
"""

from __future__ import annotations

import hashlib
import re
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, select, update

from rlvitals.contract import codec
from rlvitals.contract.alert import Alert
from rlvitals.contract.view import CommandView
from rlvitals_monitor.store.numbers import from_micros, to_micros
from rlvitals_monitor.store.tables import links
from rlvitals_monitor.store.words import storable

PATH = "/ui/act/"
SECRET = re.compile(r"[A-Za-z0-9_-]{43}")
LASTS = timedelta(hours=24)
KEPT = timedelta(days=7)
"""How long a link that is used or expired is still known, so that its page can say so."""
WHO_LIMIT = 128


class LinkAct(str, Enum):
    APPROVE = "approve"
    DENY = "deny"
    ACKNOWLEDGE = "acknowledge"
    SILENCE = "silence"


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """``subject`` is the id of a command (approve, deny) or of an alert (acknowledge, silence)."""

    act: LinkAct
    subject: str
    content: str
    channel: str
    created_at: datetime
    expires_at: datetime
    used_at: datetime | None = None
    used_by: str = ""


def make(
    conn: Connection,
    act: LinkAct,
    subject: str,
    content: str,
    channel: str,
    now: datetime,
    *,
    lasts: timedelta = LASTS,
) -> str:
    """A new link's path, to be put behind the service's own address. ``content`` is a `fingerprint`."""
    secret = secrets.token_urlsafe(32)
    row = {
        "digest": _digest(secret),
        "act": act.value,
        "subject": subject,
        "content": content,
        "channel": storable(channel, 128),
        "created_at": to_micros(now),
        "expires_at": to_micros(now + lasts),
    }
    conn.execute(insert(links).values(row))
    return PATH + secret


def find(conn: Connection, secret: str) -> Link | None:
    row = conn.execute(select(links).where(links.c.digest == _digest(secret))).one_or_none()
    return None if row is None else _link(row)


def use(conn: Connection, secret: str, who: str, now: datetime) -> bool:
    """Takes the link's one use. False where it is used, expired or unknown: of two who come at once, one wins."""
    at = to_micros(now)
    free = (links.c.digest == _digest(secret)) & links.c.used_at.is_(None) & (links.c.expires_at > at)
    done = conn.execute(update(links).where(free).values(used_at=at, used_by=storable(who, WHO_LIMIT)))
    return done.rowcount == 1


def sweep(conn: Connection, now: datetime) -> int:
    """Forgets the links that expired more than `KEPT` ago; how many."""
    return conn.execute(delete(links).where(links.c.expires_at <= to_micros(now - KEPT))).rowcount


def fingerprint(subject: CommandView | Alert) -> str:
    """A digest of what a link acts on: what a command would do, or which alert on which run."""
    if isinstance(subject, CommandView):
        bounds = codec.encode(subject.bounds)
        told = [subject.id, subject.run, subject.kind.value, subject.knob, subject.argument, bounds]
    else:
        told = [subject.id, subject.run, subject.attempt, subject.rule, subject.severity.value]
    return hashlib.sha256(codec.dumps(codec.encode(told))).hexdigest()


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _link(row: Row[Any]) -> Link:
    return Link(
        act=LinkAct(row.act),
        subject=row.subject,
        content=row.content,
        channel=row.channel,
        created_at=from_micros(row.created_at),
        expires_at=from_micros(row.expires_at),
        used_at=None if row.used_at is None else from_micros(row.used_at),
        used_by=row.used_by or "",
    )
