"""Who writes: finds or makes the rows of a batch's run, attempt and writer, and locks the run until the commit.

The run's row is the first that an ingest touches and the only one that it shares with others, so that no two
transactions can wait for each other in a circle.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, func, insert, select, update
from sqlalchemy.dialects import postgresql, sqlite

from rlvitals.contract.codec import DecodeError
from rlvitals.contract.report import Phase, Refusal, ReportBatch, RunInfo
from rlvitals_monitor.store import deletion, names
from rlvitals_monitor.store.knobs import check_knobs
from rlvitals_monitor.store.numbers import to_micros
from rlvitals_monitor.store.tables import attempts, runs, writers

ATTEMPTS_MAX = 10_000
WRITERS_MAX = 10_000
NAME_CHARS_MAX = 256
FRAMEWORK_CHARS_MAX = 64
TAGS_MAX = 64
CONFIG_TEXT_MAX = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a batch's records go. ``newest`` is False for a late upload of an earlier attempt."""

    run: str
    attempt_number: int
    newest: bool
    writer: str
    stored_through: int
    alone: bool
    last_step: int | None
    refused: tuple[Refusal, ...] = ()


def check(batch: ReportBatch) -> None:
    """Raises `DecodeError` where the batch as a whole cannot be filed."""
    names.check_id(names.RUN_ID, batch.run.id, "run.id")
    names.check_id(names.ATTEMPT_ID, batch.attempt, "attempt")
    names.check_id(names.WRITER, batch.writer, "writer")
    names.check_project(batch.run.project)


def admit(connection: Connection, batch: ReportBatch, now: datetime) -> Place:
    """Locks the run and returns the place of its batch; makes what is not there yet. Raises as `check` does,
    and `Gone` for a run that was deleted."""
    check(batch)
    at = to_micros(now)
    run = _run(connection, batch.run, at)
    attempt, is_new = _attempt(connection, batch, at)
    stored_through, alone = _writer(connection, attempt.number, batch.writer, at)
    newest = attempt.ordinal == _last_ordinal(connection, batch.run.id)
    refused = _describe(connection, run, batch.run, is_new) if newest else ()
    return Place(
        run=batch.run.id,
        attempt_number=attempt.number,
        newest=newest,
        writer=batch.writer,
        stored_through=stored_through,
        alone=alone,
        last_step=attempt.last_step,
        refused=refused,
    )


def _run(connection: Connection, info: RunInfo, at: int) -> Row[Any]:
    touch = update(runs).where(runs.c.id == info.id).values(seen_at=at)
    if connection.execute(touch).rowcount == 0:
        row = _fields(info) | {
            "id": info.id, "config": {}, "tags": [], "capabilities": {},
            "created_at": at, "seen_at": at, "phase": Phase.STARTING.value,
        }  # fmt: skip
        _insert_unless_there(connection, runs, row)
        connection.execute(touch)
    found = connection.execute(select(runs).where(runs.c.id == info.id)).one()
    if found.deleted_at is not None:
        deletion.refuse_deleted(connection, info.id)
    return found


def _fields(info: RunInfo) -> dict[str, Any]:
    return {
        "project": info.project,
        "name": names.clean(info.name, NAME_CHARS_MAX),
        "framework": names.clean(info.framework, FRAMEWORK_CHARS_MAX),
        "model": names.clean(info.model, NAME_CHARS_MAX),
    }


def _insert_unless_there(connection: Connection, table: Any, row: dict[str, Any]) -> None:
    dialect = sqlite if connection.dialect.name == "sqlite" else postgresql
    connection.execute(dialect.insert(table).on_conflict_do_nothing(), row)


def _attempt(connection: Connection, batch: ReportBatch, at: int) -> tuple[Row[Any], bool]:
    find = select(attempts).where(attempts.c.run == batch.run.id, attempts.c.id == batch.attempt)
    row = connection.execute(find).one_or_none()
    if row is not None:
        return row, False
    ordinal = _last_ordinal(connection, batch.run.id) + 1
    if ordinal > ATTEMPTS_MAX:
        raise DecodeError("attempt", f"at most {ATTEMPTS_MAX} attempts of one run", batch.attempt)
    connection.execute(insert(attempts).values(run=batch.run.id, id=batch.attempt, ordinal=ordinal, started_at=at))
    return connection.execute(find).one(), True


def _last_ordinal(connection: Connection, run: str) -> int:
    return connection.scalar(select(func.max(attempts.c.ordinal)).where(attempts.c.run == run)) or 0


def _writer(connection: Connection, attempt: int, name: str, at: int) -> tuple[int, bool]:
    """(stored_through, whether it is the attempt's only writer); -1 where nothing is stored yet."""
    rows = connection.execute(
        select(writers.c.name, writers.c.stored_through).where(writers.c.attempt == attempt)
    ).all()
    known = {row.name: row.stored_through for row in rows}
    if name not in known:
        if len(known) >= WRITERS_MAX:
            raise DecodeError("writer", f"at most {WRITERS_MAX} writers of one attempt", name)
        connection.execute(insert(writers).values(attempt=attempt, name=name, stored_through=-1, seen_at=at))
    return known.get(name, -1), not (known.keys() - {name})


def _describe(connection: Connection, run: Row[Any], info: RunInfo, fresh: bool) -> tuple[Refusal, ...]:
    """Updates what the run says of itself: empty fields change nothing, a new attempt's config replaces."""
    changes: dict[str, Any] = {name: value for name, value in _fields(info).items() if value}
    refused: list[Refusal] = []
    for name in ("config", "capabilities"):
        try:
            told = names.clean_json(getattr(info, name), text_limit=CONFIG_TEXT_MAX)
        except ValueError as error:
            refused.append(Refusal(line=0, field=f"run.{name}", reason=str(error)))
            continue
        if told:
            changes[name] = told if fresh else {**getattr(run, name), **told}  # type: ignore[dict-item]
    knobs, bad = check_knobs(info.knobs)
    refused += bad
    if knobs or fresh:
        changes["knobs"] = knobs if fresh else {**run.knobs, **knobs}
    if info.tags:
        changes["tags"] = [names.clean(tag, NAME_CHARS_MAX) for tag in info.tags[:TAGS_MAX]]
    changes = {name: value for name, value in changes.items() if value != getattr(run, name)}
    if changes:
        connection.execute(update(runs).where(runs.c.id == info.id).values(**changes))
    return tuple(refused)
