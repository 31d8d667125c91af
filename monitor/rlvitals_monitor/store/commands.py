"""Commands and their audit. A change of state is a conditional update, so of two racing decisions one wins.

The audit is append-only: there is a function that adds a line and one that reads, and none that changes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, and_, func, insert, or_, select, update

from rlvitals.contract import codec
from rlvitals.contract.command import CommandKind, CommandState
from rlvitals.contract.report import Phase, RunInfo
from rlvitals.contract.view import AuditView, CommandView
from rlvitals_monitor.store.numbers import from_micros, to_micros
from rlvitals_monitor.store.tables import audit, commands, runs
from rlvitals_monitor.store.words import storable

Cursor = tuple[int, str]
"""(time in microseconds, id) of the last row of a page."""

HISTORY_LIMIT = 200
WHO_LIMIT = 128
WHAT_LIMIT = 64
DETAIL_LIMIT = 1000

_CHAINED = ("at", "run", "command", "who", "what", "detail")
_AUDIT_LOCK = 0x524C56
_COLUMNS = frozenset({"id", "run", "state", "kind", "created_at", "expires_at", "alert_id"})
_BODY = tuple(f.name for f in fields(CommandView) if f.name not in _COLUMNS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The run that a command is for, as it is now."""

    info: RunInfo
    phase: Phase
    last_step: int | None


def read_subject(conn: Connection, run: str, *, lock: bool = False) -> Subject | None:
    """``lock`` makes the decisions on one run take turns (PostgreSQL; SQLite has one writer anyway)."""
    query = select(runs).where(runs.c.id == run)
    row = conn.execute(query.with_for_update() if lock else query).one_or_none()
    if row is None:
        return None
    info = RunInfo(
        id=row.id,
        project=row.project,
        name=row.name,
        framework=row.framework,
        model=row.model,
        config=row.config,
        tags=tuple(row.tags),
        capabilities=row.capabilities,
    )
    return Subject(info=info, phase=Phase(row.phase), last_step=row.last_step)


def add(conn: Connection, command: CommandView) -> bool:
    """False when a command of this id is there already. The caller holds the run's row."""
    if conn.scalar(select(commands.c.id).where(commands.c.id == command.id)) is not None:
        return False
    conn.execute(insert(commands).values(_to_row(command)))
    return True


def find(conn: Connection, command_id: str) -> CommandView | None:
    row = conn.execute(select(commands).where(commands.c.id == command_id)).one_or_none()
    return None if row is None else _from_row(row)


def change(conn: Connection, command: CommandView, *, before: Iterable[CommandState]) -> bool:
    """Writes ``command`` over its row if that still is in one of the states ``before``; False if it is not."""
    states = [state.value for state in before]
    row = _to_row(command)
    done = conn.execute(
        update(commands)
        .where(commands.c.id == command.id, commands.c.state.in_(states))
        .values(state=row["state"], expires_at=row["expires_at"], body=row["body"])
    )
    return done.rowcount == 1


def history(conn: Connection, run: str, kind: CommandKind) -> tuple[CommandView, ...]:
    """The last `HISTORY_LIMIT` commands of a kind, oldest first."""
    rows = conn.execute(
        select(commands)
        .where(commands.c.run == run, commands.c.kind == kind.value)
        .order_by(commands.c.created_at.desc(), commands.c.id.desc())
        .limit(HISTORY_LIMIT)
    ).all()
    return tuple(_from_row(row) for row in reversed(rows))


def waiting(conn: Connection, run: str, now: datetime) -> tuple[CommandView, ...]:
    """What the trainer is to hear: pending or delivered, not expired, oldest first."""
    rows = conn.execute(
        select(commands)
        .where(
            commands.c.run == run,
            commands.c.state.in_([CommandState.PENDING.value, CommandState.DELIVERED.value]),
            commands.c.expires_at > to_micros(now),
        )
        .order_by(commands.c.created_at, commands.c.id)
    ).all()
    return tuple(_from_row(row) for row in rows)


def overdue(conn: Connection, now: datetime, states: Iterable[CommandState]) -> tuple[CommandView, ...]:
    rows = conn.execute(
        select(commands)
        .where(commands.c.state.in_([s.value for s in states]), commands.c.expires_at <= to_micros(now))
        .order_by(commands.c.id)
    ).all()
    return tuple(_from_row(row) for row in rows)


def page(
    conn: Connection,
    *,
    run: str | None = None,
    state: CommandState | None = None,
    after: Cursor | None = None,
    limit: int = 50,
) -> tuple[tuple[CommandView, ...], Cursor | None]:
    """Newest first; the cursor leads to the next page and is None on the last."""
    query = select(commands).order_by(commands.c.created_at.desc(), commands.c.id.desc()).limit(limit + 1)
    if run is not None:
        query = query.where(commands.c.run == run)
    if state is not None:
        query = query.where(commands.c.state == state.value)
    if after is not None:
        at, key = after
        query = query.where(
            or_(commands.c.created_at < at, and_(commands.c.created_at == at, commands.c.id < key))
        )
    rows = conn.execute(query).all()
    more = (rows[limit - 1].created_at, rows[limit - 1].id) if len(rows) > limit else None
    return tuple(_from_row(row) for row in rows[:limit]), more


def append_audit(
    conn: Connection, *, at: datetime, run: str, command: str, who: str, what: str, detail: str = ""
) -> None:
    """Each line is chained to the one before: the head is locked first, so that two writers take turns."""
    head = _lock_head(conn)
    line = {
        "at": to_micros(at),
        "run": run,
        "command": command,
        "who": storable(who, WHO_LIMIT),
        "what": storable(what, WHAT_LIMIT),
        "detail": storable(detail, DETAIL_LIMIT),
    }
    digest = chained(head, line)
    conn.execute(insert(audit).values(**line, digest=digest))


def chained(head: str, line: Mapping[str, Any]) -> str:
    """The digest of an audit line after the line whose digest is ``head`` ("" for the first): SHA-256, hex."""
    said = json.dumps([line[name] for name in _CHAINED], ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(f"{head}\n{said}".encode()).hexdigest()


def _lock_head(conn: Connection) -> str:
    """The digest of the last line. The caller's transaction holds the turn to its end."""
    if conn.dialect.name == "postgresql":
        conn.execute(select(func.pg_advisory_xact_lock(_AUDIT_LOCK)))
    last = select(audit.c.digest).order_by(audit.c.number.desc()).limit(1)
    return conn.scalar(last) or ""


def is_audited(conn: Connection, *, run: str, command: str) -> bool:
    found = select(audit.c.number).where(audit.c.run == run, audit.c.command == command).limit(1)
    return conn.scalar(found) is not None


def audit_page(
    conn: Connection, *, run: str | None = None, after: int | None = None, limit: int = 50
) -> tuple[tuple[AuditView, ...], int | None]:
    """Newest first; the number leads to the next page and is None on the last."""
    query = select(audit).order_by(audit.c.number.desc()).limit(limit + 1)
    if run is not None:
        query = query.where(audit.c.run == run)
    if after is not None:
        query = query.where(audit.c.number < after)
    rows = conn.execute(query).all()
    more = rows[limit - 1].number if len(rows) > limit else None
    return tuple(_audit_view(row) for row in rows[:limit]), more


def _to_row(command: CommandView) -> dict[str, Any]:
    return {
        "id": command.id,
        "run": command.run,
        "state": command.state.value,
        "kind": command.kind.value,
        "created_at": to_micros(command.created_at),
        "expires_at": to_micros(command.expires_at),
        "alert": command.alert_id or None,
        "body": {name: codec.encode(getattr(command, name)) for name in _BODY},
    }


def _from_row(row: Row[Any]) -> CommandView:
    frame = {
        "id": row.id,
        "run": row.run,
        "state": row.state,
        "kind": row.kind,
        "created_at": codec.encode(from_micros(row.created_at)),
        "expires_at": codec.encode(from_micros(row.expires_at)),
        "alert_id": row.alert or "",
    }
    return codec.decode(CommandView, {**row.body, **frame})


def _audit_view(row: Row[Any]) -> AuditView:
    return AuditView(
        at=from_micros(row.at),
        run=row.run,
        command_id=row.command,
        who=row.who,
        what=row.what,
        detail=row.detail,
    )
