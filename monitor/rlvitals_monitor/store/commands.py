"""Commands. A change of state is a conditional update, so of two racing decisions one wins."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, func, insert, or_, select, update

from rlvitals.contract import codec
from rlvitals.contract.command import ARGUMENT_KINDS, CommandKind, CommandState
from rlvitals.contract.report import Phase, RunInfo
from rlvitals.contract.view import CommandView, Voice
from rlvitals_monitor.store.deletion import is_there, of_a_deleted
from rlvitals_monitor.store.knobs import knobs_of
from rlvitals_monitor.store.numbers import from_micros, to_micros
from rlvitals_monitor.store.tables import attempts, commands, runs, writers
from rlvitals_monitor.store.voices import voices_of

Cursor = tuple[int, str]
"""(time in microseconds, id) of the last row of a page."""

HISTORY_LIMIT = 200
OPEN = (CommandState.PROPOSED, CommandState.PENDING, CommandState.DELIVERED)
ENDED = (Phase.FINISHED, Phase.FAILED)
SETTLED_AFTER = timedelta(seconds=30)
"""How long after a run's end its last outcomes may still be on their way."""

SILENT_AFTER = timedelta(seconds=60)
"""What was given to an attempt that says nothing for so long, while a newer one runs, is given up."""

_COLUMNS = frozenset({"id", "run", "state", "kind", "created_at", "expires_at", "alert_id", "voices"})
_BODY = tuple(f.name for f in fields(CommandView) if f.name not in _COLUMNS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The run that a command is for, as it is now."""

    info: RunInfo
    phase: Phase
    last_step: int | None


def read_subject(conn: Connection, run: str, *, lock: bool = False) -> Subject | None:
    """``lock`` makes the decisions on one run take turns (PostgreSQL; SQLite has one writer anyway)."""
    query = select(runs).where(runs.c.id == run, is_there())
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
        knobs=knobs_of(row.knobs),
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
    return None if row is None else _heard(conn, [_from_row(row)])[0]


def voices_for(conn: Connection, command_id: str) -> tuple[Voice, ...]:
    return voices_of(conn, [command_id]).get(command_id, ())


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


def count_changes(conn: Connection, run: str) -> int:
    """How many commands changed a number of the run."""
    kinds = [kind.value for kind in ARGUMENT_KINDS]
    query = select(func.count()).where(
        commands.c.run == run, commands.c.state == CommandState.APPLIED.value, commands.c.kind.in_(kinds)
    )
    return conn.scalar(query) or 0


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


def overdue_runs(conn: Connection, now: datetime) -> tuple[str, ...]:
    """Runs with open commands that are past their time, that came too late for the run, or that were lost."""
    query = (
        select(commands.c.run)
        .join(runs, runs.c.id == commands.c.run)
        .where(is_there(), _is_overdue(now))
        .distinct()
    )
    return tuple(conn.scalars(query.order_by(commands.c.run)))


def overdue(conn: Connection, run: str, now: datetime) -> tuple[CommandView, ...]:
    query = select(commands).join(runs, runs.c.id == commands.c.run).where(commands.c.run == run, _is_overdue(now))
    return tuple(_from_row(row) for row in conn.execute(query.order_by(commands.c.id)))


def _is_overdue(now: datetime) -> ColumnElement[bool]:
    ended = runs.c.phase.in_([phase.value for phase in ENDED]) & (runs.c.seen_at <= to_micros(now - SETTLED_AFTER))
    late = commands.c.expires_at <= to_micros(now)
    return commands.c.state.in_([state.value for state in OPEN]) & or_(late, ended, _is_lost(now))


def _is_lost(now: datetime) -> ColumnElement[bool]:
    """Given to an attempt that fell silent, and a newer one has begun."""
    holder, newer = attempts.alias(), attempts.alias()
    heard = writers.c.seen_at > to_micros(now - SILENT_AFTER)
    is_heard = select(writers.c.attempt).where(writers.c.attempt == holder.c.number, heard).exists()
    is_old = select(newer.c.number).where(newer.c.run == holder.c.run, newer.c.ordinal > holder.c.ordinal).exists()
    is_holder = (holder.c.run == commands.c.run) & (holder.c.id == commands.c.body["handed_to"].as_string())
    lost = select(holder.c.number).where(is_holder, is_old, ~is_heard).exists()
    return and_(commands.c.state == CommandState.DELIVERED.value, lost)


def page(
    conn: Connection,
    *,
    run: str | None = None,
    state: CommandState | None = None,
    after: Cursor | None = None,
    limit: int = 50,
) -> tuple[tuple[CommandView, ...], Cursor | None]:
    """Newest first; the cursor leads to the next page and is None on the last."""
    query = select(commands).where(~of_a_deleted(commands.c.run))
    query = query.order_by(commands.c.created_at.desc(), commands.c.id.desc()).limit(limit + 1)
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
    return tuple(_heard(conn, [_from_row(row) for row in rows[:limit]])), more


def _heard(conn: Connection, found: Sequence[CommandView]) -> list[CommandView]:
    """With the voices that each has."""
    heard = voices_of(conn, [view.id for view in found])
    return [replace(view, voices=heard.get(view.id, ())) for view in found]


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
