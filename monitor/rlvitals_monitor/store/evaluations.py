"""The persisted cursor of judging: which attempts have new steps, how far each is, what the rules remember."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, func, or_, select
from sqlalchemy.dialects import postgresql, sqlite

from rlvitals.contract.report import Json
from rlvitals_monitor.store.deletion import is_there
from rlvitals_monitor.store.tables import attempts, evaluations, runs

_JUDGING = 0x4A44
"""The first half of an advisory lock's key; the second is the attempt's number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The attempt that is judged."""

    number: int
    attempt: str
    run: str
    config: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """All steps up to ``step`` have been judged; ``memory`` is what the rules knew after it."""

    step: int
    memory: Json


def claim(connection: Connection, attempt_number: int) -> bool:
    """Whether nobody else judges the attempt just now; it stays claimed until the end of the transaction.

    Judges of other processes pass it over and turn to other runs, where each would wait for the other at the run's
    row, which they share with what comes in.
    """
    if connection.dialect.name != "postgresql":
        return True
    key = func.pg_try_advisory_xact_lock(_JUDGING, attempt_number % 2**31)
    return bool(connection.scalar(select(key)))


def lock_subject(connection: Connection, attempt_number: int) -> Subject | None:
    """The attempt, with its run's row locked until the end of the transaction: one judge at a time (PostgreSQL;
    SQLite has one writer anyway). None where there is no such attempt, or its run was deleted.
    """
    row = connection.execute(
        select(attempts.c.number, attempts.c.id, attempts.c.run, runs.c.config)
        .join(runs, runs.c.id == attempts.c.run)
        .where(attempts.c.number == attempt_number, is_there())
        .with_for_update(of=runs)
    ).one_or_none()
    if row is None:
        return None
    return Subject(number=row.number, attempt=row.id, run=row.run, config=dict(row.config))


def behind(connection: Connection, limit: int) -> list[tuple[int, str]]:
    """(attempt number, run) of at most ``limit`` attempts with steps that have not been judged, oldest first."""
    query = select_behind(attempts.c.number, attempts.c.run).order_by(attempts.c.number).limit(limit)
    return [(row.number, row.run) for row in connection.execute(query)]


def select_behind(*columns: ColumnElement[Any]) -> Select[Any]:
    """``columns`` of the attempts, with their runs, that have steps which have not been judged."""
    return (
        select(*columns)
        .select_from(attempts)
        .join(runs, runs.c.id == attempts.c.run)
        .outerjoin(evaluations, evaluations.c.attempt == attempts.c.number)
        .where(
            is_there(),
            attempts.c.last_step.is_not(None),
            or_(evaluations.c.step.is_(None), evaluations.c.step < attempts.c.last_step),
        )
    )


def find(connection: Connection, attempt_number: int) -> Kept | None:
    row = connection.execute(select(evaluations).where(evaluations.c.attempt == attempt_number)).one_or_none()
    return None if row is None else Kept(step=row.step, memory=row.memory)


def last_words(connection: Connection, attempt_numbers: Collection[int]) -> dict[int, tuple[object, object]]:
    """By attempt: the verdicts and the metrics ever seen, without the rest of the memory."""
    memory = evaluations.c.memory
    rows = connection.execute(
        select(
            evaluations.c.attempt, memory["verdicts"].label("verdicts"), memory[("window", "seen")].label("seen")
        ).where(evaluations.c.attempt.in_(attempt_numbers))
    )
    return {row.attempt: (row.verdicts, row.seen) for row in rows}


def cursor(connection: Connection, attempt_number: int) -> int | None:
    """The last judged step, without reading the memory."""
    return connection.scalar(select(evaluations.c.step).where(evaluations.c.attempt == attempt_number))


def keep(connection: Connection, attempt_number: int, step: int, memory: Mapping[str, object]) -> None:
    """Moves the cursor; the caller holds the run's lock."""
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    row = {"attempt": attempt_number, "step": step, "memory": dict(memory)}
    statement = insert(evaluations).values(row)
    changed = {"step": statement.excluded.step, "memory": statement.excluded.memory}
    connection.execute(statement.on_conflict_do_update(index_elements=["attempt"], set_=changed))
