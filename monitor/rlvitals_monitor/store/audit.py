"""The audit of control and security. There are functions that add a line and that read, and none that changes one.

Each line carries the digest of itself and of the one before it, so that a line that was changed, put in or taken
out afterwards shows. What was cut off at the end shows to whoever kept the last digest.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, func, insert, select

from rlvitals.contract.view import AuditCheck, AuditView
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.numbers import from_micros, to_micros
from rlvitals_monitor.store.tables import audit
from rlvitals_monitor.store.words import storable

WHO_LIMIT = 128
WHAT_LIMIT = 64
DETAIL_LIMIT = 1000
ROWS_A_READ = 1_000

_CHAINED = ("at", "run", "command", "who", "what", "detail")
_LOCK = 0x524C56


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which lines are wanted; an empty field wants all."""

    run: str = ""
    command: str = ""
    who: str = ""
    what: str = ""


def append_audit(
    conn: Connection, *, at: datetime, run: str = "", command: str = "", who: str, what: str, detail: str = ""
) -> None:
    """Each line is chained to the one before: the head is locked first, so that two writers take turns.

    The turn lasts to the end of the caller's transaction, which must take no further lock on a run after this.
    """
    head = _lock_head(conn)
    line = {
        "at": to_micros(at),
        "run": run,
        "command": command,
        "who": storable(who, WHO_LIMIT),
        "what": storable(what, WHAT_LIMIT),
        "detail": storable(detail, DETAIL_LIMIT),
    }
    conn.execute(insert(audit).values(**line, digest=chained(head, line)))


def chained(head: str, line: Mapping[str, Any]) -> str:
    """The digest of an audit line after the line whose digest is ``head`` ("" for the first): SHA-256, hex."""
    said = json.dumps([line[name] for name in _CHAINED], ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(f"{head}\n{said}".encode()).hexdigest()


def is_audited(conn: Connection, *, run: str, command: str) -> bool:
    found = select(audit.c.number).where(audit.c.run == run, audit.c.command == command).limit(1)
    return conn.scalar(found) is not None


def audit_page(
    conn: Connection, wanted: Filter | None = None, *, after: int | None = None, limit: int = 50
) -> tuple[tuple[AuditView, ...], int | None]:
    """Newest first; the number leads to the next page and is None on the last."""
    query = _select(wanted or Filter()).order_by(audit.c.number.desc()).limit(limit + 1)
    if after is not None:
        query = query.where(audit.c.number < after)
    rows = conn.execute(query).all()
    more = rows[limit - 1].number if len(rows) > limit else None
    return tuple(_view(row) for row in rows[:limit]), more


def audit_lines(
    conn: Connection, wanted: Filter | None = None, *, after: int = 0, limit: int = ROWS_A_READ
) -> tuple[AuditView, ...]:
    """Oldest first, those behind line number ``after``: for an export piece by piece."""
    query = _select(wanted or Filter()).where(audit.c.number > after).order_by(audit.c.number).limit(limit)
    return tuple(_view(row) for row in conn.execute(query))


def every_line(store: Store, wanted: Filter) -> Iterator[tuple[AuditView, ...]]:
    """Oldest first, piece by piece, so that a long audit is never in memory."""
    after = 0
    while True:
        with store.read() as conn:
            lines = audit_lines(conn, wanted, after=after)
        if not lines:
            return
        after = lines[-1].number
        yield lines


def verify(conn: Connection, known_head: str = "") -> AuditCheck:
    """Walks the whole chain. ``known_head`` is a digest noted earlier, which must still be in it."""
    lines = unchained = 0
    head, seen = "", not known_head
    for row in _rows(conn):
        lines += 1
        if not row.digest and not head:
            unchained += 1
            continue
        line = {name: getattr(row, name) for name in _CHAINED}
        if row.digest != chained(head, line):
            fault = "the line, or one before it, was changed, put in or taken out"
            return AuditCheck(lines=lines, unchained=unchained, head=head, fault=fault, number=row.number)
        head = row.digest
        seen = seen or head == known_head
    fault = "" if seen else "the digest that was noted earlier is not in it: lines were taken out or cut off"
    return AuditCheck(lines=lines, unchained=unchained, head=head, fault=fault)


def _rows(conn: Connection) -> Iterator[Row[Any]]:
    after = 0
    while rows := conn.execute(
        select(audit).where(audit.c.number > after).order_by(audit.c.number).limit(ROWS_A_READ)
    ).all():
        yield from rows
        after = rows[-1].number


def _select(wanted: Filter) -> Any:
    query = select(audit)
    for column, value in (
        (audit.c.run, wanted.run),
        (audit.c.command, wanted.command),
        (audit.c.who, wanted.who),
        (audit.c.what, wanted.what),
    ):
        if value:
            query = query.where(column == value)
    return query


def _lock_head(conn: Connection) -> str:
    """The digest of the last line. The caller's transaction holds the turn to its end."""
    if conn.dialect.name == "postgresql":
        conn.execute(select(func.pg_advisory_xact_lock(_LOCK)))
    last = select(audit.c.digest).order_by(audit.c.number.desc()).limit(1)
    return conn.scalar(last) or ""


def _view(row: Row[Any]) -> AuditView:
    return AuditView(
        at=from_micros(row.at),
        run=row.run,
        command_id=row.command,
        who=row.who,
        what=row.what,
        detail=row.detail,
        number=row.number,
        digest=row.digest,
    )
