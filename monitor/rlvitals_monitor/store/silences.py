"""Silences and maintenance windows. None is ever removed: one that ended stays, with who ended it."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from cronsim import CronSimError
from sqlalchemy import Connection, Row, and_, insert, or_, select, update

from rlvitals.contract.view import SilencePurpose, SilenceState
from rlvitals_monitor.matcher import Matcher
from rlvitals_monitor.silences.hours import Hours
from rlvitals_monitor.silences.silence import Silence
from rlvitals_monitor.store.numbers import from_micros, to_micros
from rlvitals_monitor.store.tables import silences
from rlvitals_monitor.store.words import storable

log = logging.getLogger(__name__)

WHO_LIMIT = 128
WHY_LIMIT = 1000

Cursor = tuple[int, str]
"""(created_at in microseconds, id) of the last silence of a page."""


def add(conn: Connection, silence: Silence) -> Silence:
    """Keeps it under its own id, and answers it as it was kept."""
    conn.execute(insert(silences).values(_to_row(silence)))
    kept = find(conn, silence.id)
    assert kept is not None
    return kept


def find(conn: Connection, silence: str) -> Silence | None:
    row = conn.execute(select(silences).where(silences.c.id == silence)).one_or_none()
    return None if row is None else _from_row(row)


def active(conn: Connection, now: datetime) -> tuple[Silence, ...]:
    """What is in force at ``now``, each with its begin and end; of one that comes again, those of this time."""
    at = to_micros(now)
    wanted = and_(silences.c.starts_at <= at, silences.c.ends_at > at)
    rows = conn.execute(select(silences).where(wanted).order_by(silences.c.ends_at, silences.c.id))
    found = (_in_force(row, now) for row in rows)
    return tuple(silence for silence in found if silence is not None)


def _in_force(row: Row[Any], now: datetime) -> Silence | None:
    """One that cannot be read any more (a zone that this machine lacks) silences nothing, and blocks nothing."""
    try:
        return _from_row(row).at(now)
    except (LookupError, ValueError, TypeError, AttributeError, CronSimError) as error:
        log.error("silence %s cannot be read and is left out: %s", row.id, error)
        return None


def end(conn: Connection, silence: str, who: str, now: datetime) -> bool:
    """Ends it before its time. False where there is none, or none that is not over."""
    at = to_micros(now)
    done = conn.execute(
        update(silences)
        .where(silences.c.id == silence, silences.c.ends_at > at)
        .values(ends_at=at, ended_by=storable(who, WHO_LIMIT))
    )
    return done.rowcount == 1


def page(
    conn: Connection,
    now: datetime,
    *,
    states: Iterable[SilenceState] = (),
    after: Cursor | None = None,
    limit: int = 50,
) -> tuple[tuple[Silence, ...], Cursor | None]:
    """Newest first; without ``states`` all of them. The cursor leads to the next page and is None on the last."""
    query = select(silences).order_by(silences.c.created_at.desc(), silences.c.id.desc())
    if after is not None:
        at, key = after
        query = query.where(
            or_(silences.c.created_at < at, and_(silences.c.created_at == at, silences.c.id < key))
        )
    wanted = frozenset(states) or frozenset(SilenceState)
    if SilenceState.ENDED not in wanted:
        query = query.where(silences.c.ends_at > to_micros(now))
    found = (_from_row(row) for row in conn.execute(query))
    shown: list[Silence] = []
    for silence in found:
        if silence.state(now) not in wanted:
            continue
        if len(shown) == limit:
            return tuple(shown), (to_micros(shown[-1].created_at), shown[-1].id)
        shown.append(silence)
    return tuple(shown), None


def _to_row(silence: Silence) -> dict[str, Any]:
    hours = silence.hours
    matching: dict[str, Any] = {"alerts": [str(matcher) for matcher in silence.matchers]}
    if hours is not None:
        matching["hours"] = {"cron": hours.cron, "zone": hours.zone, "lasts_s": hours.lasts_s}
    return {
        "id": silence.id,
        "purpose": silence.purpose.value,
        "matchers": matching,
        "starts_at": to_micros(silence.starts_at),
        "ends_at": to_micros(silence.ends_at),
        "created_at": to_micros(silence.created_at),
        "who": storable(silence.who, WHO_LIMIT),
        "why": storable(silence.why, WHY_LIMIT),
        "ended_by": storable(silence.ended_by, WHO_LIMIT) or None,
    }


def _from_row(row: Row[Any]) -> Silence:
    hours = row.matchers.get("hours")
    return Silence(
        id=row.id,
        purpose=SilencePurpose(row.purpose),
        matchers=tuple(Matcher.read(text) for text in row.matchers["alerts"]),
        starts_at=from_micros(row.starts_at),
        ends_at=from_micros(row.ends_at),
        created_at=from_micros(row.created_at),
        who=row.who,
        why=row.why,
        ended_by=row.ended_by or "",
        hours=None if hours is None else Hours(**hours),
    )
