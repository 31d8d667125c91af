"""Sign-ins that failed, by whom they were for and from where, so that all processes count together."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from sqlalchemy import Connection, delete, func, insert, select

from rlvitals_monitor.store.numbers import from_micros, to_micros
from rlvitals_monitor.store.tables import refused_entries
from rlvitals_monitor.store.words import storable

SOURCE_CHARS_MAX = 128
_LOCK = 0x524C57


def take_turns(conn: Connection, sources: Iterable[str]) -> None:
    """Others who ask about one of ``sources`` wait for the end of this transaction: none is counted late."""
    if conn.dialect.name == "postgresql":
        for source in sorted(sources):
            conn.execute(
                select(func.pg_advisory_xact_lock(_LOCK, func.hashtext(storable(source, SOURCE_CHARS_MAX))))
            )


def note(conn: Connection, sources: Iterable[str], now: datetime) -> tuple[int, ...]:
    """Counts a failure for each; their numbers, for `take_back`."""
    rows = [{"source": storable(source, SOURCE_CHARS_MAX), "at": to_micros(now)} for source in sources]
    return tuple(conn.scalars(insert(refused_entries).returning(refused_entries.c.number), rows).all())


def take_back(conn: Connection, numbers: Iterable[int]) -> None:
    conn.execute(delete(refused_entries).where(refused_entries.c.number.in_(tuple(numbers))))


def recent(conn: Connection, source: str, since: datetime, limit: int) -> tuple[datetime, ...]:
    """The last ``limit`` since then, oldest first."""
    named = storable(source, SOURCE_CHARS_MAX)
    these = (refused_entries.c.source == named) & (refused_entries.c.at > to_micros(since))
    query = select(refused_entries.c.at).where(these).order_by(refused_entries.c.at.desc()).limit(limit)
    return tuple(from_micros(at) for at in reversed(conn.scalars(query).all()))


def forget(conn: Connection, source: str) -> None:
    named = storable(source, SOURCE_CHARS_MAX)
    conn.execute(delete(refused_entries).where(refused_entries.c.source == named))


def sweep(conn: Connection, now: datetime, kept: timedelta) -> int:
    return conn.execute(delete(refused_entries).where(refused_entries.c.at <= to_micros(now - kept))).rowcount
