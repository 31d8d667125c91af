"""The rule document that is edited while the service runs: every version as it was written, the last in force."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, func, select
from sqlalchemy.dialects import postgresql, sqlite

from rlvitals_monitor.store.numbers import from_micros, to_micros
from rlvitals_monitor.store.tables import edited_rules
from rlvitals_monitor.store.words import storable

WHO_LIMIT, WHY_LIMIT = 128, 500
NONE = 0
"""The number before the first version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    number: int
    text: str
    why: str
    changed_at: datetime
    changed_by: str


def newest_number(conn: Connection) -> int:
    return conn.scalar(select(func.max(edited_rules.c.number))) or NONE


def find(conn: Connection, number: int) -> Version | None:
    row = conn.execute(select(edited_rules).where(edited_rules.c.number == number)).one_or_none()
    return None if row is None else _version(row)


def newest(conn: Connection, limit: int) -> tuple[Version, ...]:
    """The last one first."""
    rows = conn.execute(select(edited_rules).order_by(edited_rules.c.number.desc()).limit(limit))
    return tuple(_version(row) for row in rows)


def add(conn: Connection, base: int, text: str, why: str, who: str, now: datetime) -> int | None:
    """Its number; None where ``base`` is no longer the newest, also where somebody writes one just now."""
    if newest_number(conn) != base:
        return None
    build = postgresql.insert if conn.dialect.name == "postgresql" else sqlite.insert
    row = {
        "number": base + 1,
        "text": text,
        "why": storable(why, WHY_LIMIT),
        "changed_at": to_micros(now),
        "changed_by": storable(who, WHO_LIMIT),
    }
    new = build(edited_rules).values(row).on_conflict_do_nothing().returning(edited_rules.c.number)
    number: int | None = conn.scalar(new)
    return number


def _version(row: Row[Any]) -> Version:
    return Version(
        number=row.number,
        text=row.text,
        why=row.why,
        changed_at=from_micros(row.changed_at),
        changed_by=row.changed_by,
    )
