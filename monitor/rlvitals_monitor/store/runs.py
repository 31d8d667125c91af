"""Reads one run, its attempts and its signs of life; `run_list` reads many."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, select

from rlvitals.contract.hooks import HooksView
from rlvitals.contract.report import RunInfo
from rlvitals.contract.view import RunView
from rlvitals_monitor.errors import Gone, NotFound
from rlvitals_monitor.store import deletion, handshake, hooks, pulse, run_views
from rlvitals_monitor.store.numbers import maybe_from_micros
from rlvitals_monitor.store.pulse import Heard
from rlvitals_monitor.store.run_views import WHOLE, attempts_of, signs, step_times
from rlvitals_monitor.store.tables import attempts, runs, steps

NAMESAKES_MAX = 3


def read_run(connection: Connection, run: str, now: datetime) -> RunView:
    """One run with its attempts; raises `NotFound`."""
    row = connection.execute(select(*WHOLE).where(runs.c.id == run, deletion.is_there())).one_or_none()
    if row is None:
        raise no_run(connection, run)
    return run_views.views(connection, [row], now, whole=True)[0]


def find_attempt(connection: Connection, run: str, attempt: str | None = None) -> tuple[int, str]:
    """(number, id) of an attempt, by default the newest; raises `NotFound`."""
    query = select(attempts.c.number, attempts.c.id).join(runs, runs.c.id == attempts.c.run)
    query = query.where(attempts.c.run == run, deletion.is_there())
    if attempt is not None:
        query = query.where(attempts.c.id == attempt)
    row = connection.execute(query.order_by(attempts.c.ordinal.desc()).limit(1)).one_or_none()
    if row is None:
        if attempt is None:
            raise no_run(connection, run)
        raise NotFound(f"run {run!r} has no attempt {attempt!r}")
    return row.number, row.id


def read_hooks(connection: Connection, run: str, attempt: str | None, now: datetime) -> HooksView:
    """What the hooks of an attempt see, by default of the newest; raises `NotFound`."""
    number, name = find_attempt(connection, run, attempt)
    known = attempts_of(connection, [run])[run]
    tables = hooks.read_tables(connection, [number]).get(number, ())
    times = step_times(connection, [number]).get(number, ())
    late = known[-1].number != number
    if not late:
        row = connection.execute(select(runs).where(runs.c.id == run)).one()
        felt = signs(row, known[-1], tables=tables, times=times)
        late = pulse.is_over(felt) or pulse.first_step_is_late(felt, now)
    return handshake.view(run, name, tables, steps=len(times), late=late)


def read_heard(connection: Connection, run: str) -> Heard | None:
    """The newest attempt's signs of life, but for its alerts; None for a run without an attempt."""
    row = connection.execute(select(runs).where(runs.c.id == run, deletion.is_there())).one_or_none()
    known = attempts_of(connection, [run])[run]
    if row is None or not known:
        return None
    newest = known[-1]
    tables = hooks.read_tables(connection, [newest.number]).get(newest.number, ())
    times = step_times(connection, [newest.number]).get(newest.number, ())
    return Heard(
        run=run,
        attempt=newest.id,
        attempt_number=newest.number,
        last_step=newest.last_step,
        signs=signs(row, newest, tables=tables, times=times),
    )


def read_info(connection: Connection, run: str) -> RunInfo:
    """Who a run is; of an unknown one no more than its id."""
    row = connection.execute(select(runs).where(runs.c.id == run)).one_or_none()
    if row is None:
        return RunInfo(id=run)
    return RunInfo(
        id=run,
        project=row.project,
        name=row.name,
        framework=row.framework,
        model=row.model,
        tags=tuple(row.tags),
    )


def namesakes(connection: Connection, name: str) -> tuple[str, ...]:
    """Ids of the newest runs that bear this name."""
    query = (
        select(runs.c.id)
        .where(runs.c.name == name, deletion.is_there())
        .order_by(runs.c.created_at.desc())
        .limit(NAMESAKES_MAX)
    )
    return tuple(connection.scalars(query))


def no_run(connection: Connection, run: str) -> NotFound | Gone:
    """To be raised; tells who deleted it, and whoever gave a name in place of an id which ids it has."""
    deleted = deletion.find(connection, run)
    if deleted is not None:
        return deletion.gone(deleted)
    of_that_name = ", ".join(found for found in namesakes(connection, run) if found != run)
    hint = f"; runs of that name have the ids {of_that_name}" if of_that_name else ""
    return NotFound(f"there is no run {run[:128]!r}{hint}")


def project_of(connection: Connection, run: str) -> str | None:
    """The project of a run; None for an unknown one."""
    return connection.scalar(select(runs.c.project).where(runs.c.id == run))


def last_step(connection: Connection, run: str) -> int | None:
    """The newest attempt's last step, None when there is none yet; raises `NotFound` for an unknown run."""
    row = connection.execute(select(runs.c.last_step).where(runs.c.id == run, deletion.is_there())).one_or_none()
    if row is None:
        raise no_run(connection, run)
    return None if row.last_step is None else int(row.last_step)


def last_step_time(connection: Connection, run: str, attempt: str) -> datetime | None:
    """When the trainer's clock said that the attempt's last step was."""
    number = select(attempts.c.number).where(attempts.c.run == run, attempts.c.id == attempt).scalar_subquery()
    query = select(steps.c.time).where(steps.c.attempt == number).order_by(steps.c.step.desc()).limit(1)
    return maybe_from_micros(connection.scalar(query))
