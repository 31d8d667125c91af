"""Browsers that are signed in. The cookie is a secret of its own; only its digest is here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, select, update

from rlvitals.contract.access import AccessKind
from rlvitals_monitor.store.numbers import from_micros, maybe_from_micros, to_micros
from rlvitals_monitor.store.secret import digest, make_id, make_secret
from rlvitals_monitor.store.tables import sessions
from rlvitals_monitor.store.words import storable

AGENT_CHARS_MAX = 256
EACH_MAX = 100
"""Sessions of one user, token or share; a further one ends the oldest."""
KEPT = timedelta(days=7)


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """``subject`` is the id of the user, token or share that ``kind`` says."""

    id: str
    kind: AccessKind
    subject: str
    agent: str
    created_at: datetime
    seen_at: datetime
    expires_at: datetime
    ended_at: datetime | None = None

    def is_open(self, now: datetime, idle: timedelta) -> bool:
        return self.ended_at is None and now < self.expires_at and now < self.seen_at + idle


def start(
    conn: Connection, kind: AccessKind, subject: str, agent: str, now: datetime, expires_at: datetime
) -> tuple[str, Session]:
    """(the cookie's secret, the session)"""
    secret = make_secret()
    session = Session(
        id=make_id(),
        kind=kind,
        subject=subject,
        agent=storable(agent, AGENT_CHARS_MAX),
        created_at=now,
        seen_at=now,
        expires_at=expires_at,
    )
    row = {
        "digest": digest(secret),
        "id": session.id,
        "kind": kind.value,
        "subject": subject,
        "agent": session.agent,
        "created_at": to_micros(now),
        "seen_at": to_micros(now),
        "expires_at": to_micros(expires_at),
    }
    conn.execute(insert(sessions), row)
    _trim(conn, kind, subject, now)
    return secret, session


def find(conn: Connection, secret: str) -> Session | None:
    """Also one that is over."""
    row = conn.execute(select(sessions).where(sessions.c.digest == digest(secret))).one_or_none()
    return None if row is None else _session(row)


def list_open(conn: Connection, now: datetime, idle: timedelta) -> list[Session]:
    """The last used first."""
    query = select(sessions).where(_running(now, idle)).order_by(sessions.c.seen_at.desc(), sessions.c.id)
    return [_session(row) for row in conn.execute(query)]


def find_open(conn: Connection, session_id: str, now: datetime, idle: timedelta) -> Session | None:
    query = select(sessions).where((sessions.c.id == session_id) & _running(now, idle))
    row = conn.execute(query).one_or_none()
    return None if row is None else _session(row)


def end(conn: Connection, session_id: str, now: datetime) -> bool:
    """True when it was not ended before."""
    these = (sessions.c.id == session_id) & sessions.c.ended_at.is_(None)
    return conn.execute(update(sessions).where(these).values(ended_at=to_micros(now))).rowcount == 1


def end_of(conn: Connection, kind: AccessKind, subject: str, now: datetime, *, but: str = "") -> int:
    """Ends those of one user, token or share, except the session with the id ``but``; how many."""
    these = _of(kind, subject) & sessions.c.ended_at.is_(None) & (sessions.c.id != but)
    return conn.execute(update(sessions).where(these).values(ended_at=to_micros(now))).rowcount


def end_everybodys(conn: Connection, now: datetime, *, but: str = "") -> int:
    these = sessions.c.ended_at.is_(None) & (sessions.c.expires_at > to_micros(now)) & (sessions.c.id != but)
    return conn.execute(update(sessions).where(these).values(ended_at=to_micros(now))).rowcount


def note_uses(conn: Connection, seen: Mapping[str, datetime]) -> None:
    """When each was last seen; never goes back."""
    for session_id, at in seen.items():
        micros = to_micros(at)
        these = (sessions.c.id == session_id) & (sessions.c.seen_at < micros)
        conn.execute(update(sessions).where(these).values(seen_at=micros))


def sweep(conn: Connection, now: datetime) -> int:
    """Forgets those that were over more than `KEPT` ago; how many."""
    past = to_micros(now - KEPT)
    over = (sessions.c.expires_at <= past) | (sessions.c.ended_at <= past)
    return conn.execute(delete(sessions).where(over)).rowcount


def _running(now: datetime, idle: timedelta) -> Any:
    return (
        sessions.c.ended_at.is_(None)
        & (sessions.c.expires_at > to_micros(now))
        & (sessions.c.seen_at > to_micros(now - idle))
    )


def _of(kind: AccessKind, subject: str) -> Any:
    return (sessions.c.kind == kind.value) & (sessions.c.subject == subject)


def _trim(conn: Connection, kind: AccessKind, subject: str, now: datetime) -> None:
    newest = sessions.c.created_at.desc(), sessions.c.id
    live = select(sessions.c.id).where(_of(kind, subject) & sessions.c.ended_at.is_(None)).order_by(*newest)
    too_many = conn.scalars(live.offset(EACH_MAX)).all()
    if too_many:
        conn.execute(delete(sessions).where(sessions.c.id.in_(too_many)))


def _session(row: Row[Any]) -> Session:
    return Session(
        id=row.id,
        kind=AccessKind(row.kind),
        subject=row.subject,
        agent=row.agent,
        created_at=from_micros(row.created_at),
        seen_at=from_micros(row.seen_at),
        expires_at=from_micros(row.expires_at),
        ended_at=maybe_from_micros(row.ended_at),
    )
