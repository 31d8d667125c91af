"""Reads runs and their attempts. A run's state is derived at each reading, never stored."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, and_, func, or_, select

from rlvitals.contract.alert import AlertState, Severity
from rlvitals.contract.codec import DecodeError, decode_number
from rlvitals.contract.command import CommandKind, CommandState
from rlvitals.contract.hooks import HooksView, HookTableView
from rlvitals.contract.report import RunInfo
from rlvitals.contract.view import AttemptView, RunView
from rlvitals_monitor.errors import Gone, NotFound
from rlvitals_monitor.store import deletion, handshake, hooks, pulse
from rlvitals_monitor.store.knobs import knobs_of
from rlvitals_monitor.store.numbers import from_micros, join
from rlvitals_monitor.store.pulse import Heard
from rlvitals_monitor.store.tables import alerts, attempts, commands, points, runs, series, steps

RECENT_STEPS = 64
"""Steps from which the usual time of a step is taken."""
NAMESAKES_MAX = 3
READ_LATER = frozenset({"tail", "import"})
"""What names itself so reads a log: its steps bear the time at which they were read, which is no rate."""

Cursor = tuple[int, str]
"""(created_at in microseconds, id) of the last run of a page."""


def read_run(connection: Connection, run: str, now: datetime) -> RunView:
    """One run with its attempts; raises `NotFound`."""
    row = connection.execute(select(runs).where(runs.c.id == run, deletion.is_there())).one_or_none()
    if row is None:
        raise no_run(connection, run)
    return _views(connection, [row], now)[0]


def list_runs(
    connection: Connection,
    now: datetime,
    *,
    project: str | None = None,
    after: Cursor | None = None,
    limit: int = 50,
) -> tuple[list[RunView], Cursor | None]:
    """Runs from the newest on; the cursor leads to the next page and is None on the last."""
    query = select(runs).where(deletion.is_there())
    query = query.order_by(runs.c.created_at.desc(), runs.c.id.desc()).limit(limit + 1)
    if project is not None:
        query = query.where(runs.c.project == project)
    if after is not None:
        at, run = after
        query = query.where(or_(runs.c.created_at < at, and_(runs.c.created_at == at, runs.c.id < run)))
    rows = connection.execute(query).all()
    shown = rows[:limit]
    more = len(rows) > limit
    return _views(connection, shown, now), (shown[-1].created_at, shown[-1].id) if more else None


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
    known = _attempts(connection, [run])[run]
    tables = hooks.read_tables(connection, [number]).get(number, ())
    late = known[-1].number != number
    if not late:
        row = connection.execute(select(runs).where(runs.c.id == run)).one()
        signs = _signs(connection, row, known[-1], tables, (), None)
        late = pulse.is_over(signs) or pulse.first_step_is_late(signs, now)
    steps_seen = len(_step_times(connection, number))
    return handshake.view(run, name, tables, steps=steps_seen, late=late)


def read_heard(connection: Connection, run: str) -> Heard | None:
    """The newest attempt's signs of life, but for its alerts; None for a run without an attempt."""
    row = connection.execute(select(runs).where(runs.c.id == run, deletion.is_there())).one_or_none()
    known = _attempts(connection, [run])[run]
    if row is None or not known:
        return None
    newest = known[-1]
    tables = hooks.read_tables(connection, [newest.number]).get(newest.number, ())
    return Heard(
        run=run,
        attempt=newest.id,
        attempt_number=newest.number,
        last_step=newest.last_step,
        signs=_signs(connection, row, newest, tables, (), None),
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


def _views(connection: Connection, rows: Sequence[Row[Any]], now: datetime) -> list[RunView]:
    ids = [row.id for row in rows]
    attempts_of = _attempts(connection, ids)
    firing = _firing(connection, [known[-1].number for known in attempts_of.values()])
    stopped = _stops(connection, ids)
    tables = hooks.read_tables(connection, [known[-1].number for known in attempts_of.values()])
    views = []
    for row in rows:
        known = attempts_of[row.id]
        signs = _signs(
            connection,
            row,
            known[-1] if known else None,
            tables.get(known[-1].number, ()) if known else (),
            firing[row.id],
            stopped.get(row.id),
        )
        views.append(_view(connection, row, known, signs, now))
    return views


def _signs(
    connection: Connection,
    row: Row[Any],
    newest: Row[Any] | None,
    tables: Sequence[HookTableView],
    firing: Sequence[tuple[Severity, str]],
    stopped: int | None,
) -> pulse.Signs:
    """Of the newest attempt: what an earlier one did says nothing of this one."""
    began = row.created_at if newest is None else newest.started_at
    times = [] if newest is None else _step_times(connection, newest.number)
    stepped = newest is not None and newest.last_step is not None and row.progress_at is not None
    worst = max(firing, key=lambda pair: pair[0].rank, default=(Severity.INFO, ""))
    return pulse.Signs(
        phase=row.phase,
        began_at=from_micros(began),
        seen_at=from_micros(row.seen_at),
        progress_at=from_micros(row.progress_at) if stepped else None,
        step_s=pulse.step_seconds(times),
        gap_s=pulse.long_gap_seconds(times),
        steps=len(times),
        firing=[severity for severity, _ in firing],
        worst_rule=worst[1],
        stop_applied=stopped is not None and stopped >= began,
        hooks=handshake.read(tables),
    )


def _view(
    connection: Connection, row: Row[Any], known: Sequence[Row[Any]], signs: pulse.Signs, now: datetime
) -> RunView:
    felt = pulse.take(signs, now)
    return RunView(
        id=row.id,
        project=row.project,
        name=row.name,
        framework=row.framework,
        model=row.model,
        state=felt.state,
        light=felt.light,
        reason=felt.reason,
        created_at=from_micros(row.created_at),
        last_seen_at=signs.seen_at,
        last_progress_at=None if row.progress_at is None else from_micros(row.progress_at),
        last_step=row.last_step,
        phase=row.phase,
        kl_coef=_kl_coef(connection, known[-1].number if known else None, row.config),
        steps_per_minute=60.0 / signs.step_s if signs.step_s and row.framework not in READ_LATER else None,
        firing=len(signs.firing),
        tags=tuple(row.tags),
        config=row.config,
        capabilities=row.capabilities,
        knobs=knobs_of(row.knobs),
        attempts=tuple(_attempt_view(attempt) for attempt in known),
    )


def _attempt_view(row: Row[Any]) -> AttemptView:
    return AttemptView(
        id=row.id,
        ordinal=row.ordinal,
        started_at=from_micros(row.started_at),
        first_step=row.first_step,
        last_step=row.last_step,
    )


def _attempts(connection: Connection, ids: Iterable[str]) -> Mapping[str, list[Row[Any]]]:
    query = select(attempts).where(attempts.c.run.in_(list(ids))).order_by(attempts.c.ordinal)
    grouped: dict[str, list[Row[Any]]] = defaultdict(list)
    for row in connection.execute(query):
        grouped[row.run].append(row)
    return grouped


def _firing(connection: Connection, newest: Iterable[int]) -> Mapping[str, list[tuple[Severity, str]]]:
    """run → what fires on its newest attempt; an attempt that was left behind alarms nobody."""
    query = select(alerts.c.run, alerts.c.severity, alerts.c.rule).where(
        alerts.c.attempt.in_(list(newest)), alerts.c.state == AlertState.FIRING.value
    )
    grouped: dict[str, list[tuple[Severity, str]]] = defaultdict(list)
    for row in connection.execute(query):
        grouped[row.run].append((Severity(row.severity), row.rule))
    return grouped


def _stops(connection: Connection, ids: Iterable[str]) -> Mapping[str, int]:
    """run → when the last stop that was applied had been asked for."""
    query = (
        select(commands.c.run, func.max(commands.c.created_at).label("at"))
        .where(
            commands.c.run.in_(list(ids)),
            commands.c.kind == CommandKind.STOP.value,
            commands.c.state == CommandState.APPLIED.value,
        )
        .group_by(commands.c.run)
    )
    return {row.run: row.at for row in connection.execute(query)}


def _step_times(connection: Connection, attempt: int) -> list[float]:
    """Of the last steps, in seconds, in their order."""
    query = (
        select(steps.c.time).where(steps.c.attempt == attempt).order_by(steps.c.step.desc()).limit(RECENT_STEPS)
    )
    return [micros / 1e6 for micros in reversed(connection.scalars(query).all())]


def _kl_coef(connection: Connection, attempt: int | None, config: Mapping[str, Any]) -> float | None:
    """The last value that the trainer reported, else the one that it was configured with."""
    row = connection.execute(
        select(points.c.value, points.c.kind)
        .join(series, series.c.number == points.c.series)
        .where(series.c.attempt == attempt, series.c.metric == "kl.coef")
        .order_by(points.c.step.desc())
        .limit(1)
    ).one_or_none()
    if row is not None:
        return join(row.value, row.kind)
    try:
        return decode_number(config.get("kl_coef"))
    except DecodeError:
        return None
