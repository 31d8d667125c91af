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
from rlvitals.contract.view import AttemptView, RunView
from rlvitals_monitor.errors import NotFound
from rlvitals_monitor.store import pulse
from rlvitals_monitor.store.numbers import from_micros, join
from rlvitals_monitor.store.tables import alerts, attempts, commands, points, runs, series, steps

RECENT_STEPS = 20
"""Steps from which the usual time of a step is taken."""

Cursor = tuple[int, str]
"""(created_at in microseconds, id) of the last run of a page."""


def read_run(connection: Connection, run: str, now: datetime) -> RunView:
    """One run with its attempts; raises `NotFound`."""
    row = connection.execute(select(runs).where(runs.c.id == run)).one_or_none()
    if row is None:
        raise NotFound(f"there is no run {run!r}")
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
    query = select(runs).order_by(runs.c.created_at.desc(), runs.c.id.desc()).limit(limit + 1)
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
    query = select(attempts.c.number, attempts.c.id).where(attempts.c.run == run)
    if attempt is not None:
        query = query.where(attempts.c.id == attempt)
    row = connection.execute(query.order_by(attempts.c.ordinal.desc()).limit(1)).one_or_none()
    if row is None:
        raise NotFound(
            f"there is no run {run!r}" if attempt is None else f"run {run!r} has no attempt {attempt!r}"
        )
    return row.number, row.id


def project_of(connection: Connection, run: str) -> str | None:
    """The project of a run; None for an unknown one."""
    return connection.scalar(select(runs.c.project).where(runs.c.id == run))


def last_step(connection: Connection, run: str) -> int | None:
    """The newest attempt's last step, None when there is none yet; raises `NotFound` for an unknown run."""
    row = connection.execute(select(runs.c.last_step).where(runs.c.id == run)).one_or_none()
    if row is None:
        raise NotFound(f"there is no run {run!r}")
    return None if row.last_step is None else int(row.last_step)


def _views(connection: Connection, rows: Sequence[Row[Any]], now: datetime) -> list[RunView]:
    ids = [row.id for row in rows]
    attempts_of = _attempts(connection, ids)
    firing = _firing(connection, [known[-1].number for known in attempts_of.values()])
    stopped = _stops(connection, ids)
    views = []
    for row in rows:
        known = attempts_of[row.id]
        newest = known[-1].number if known else None
        step_s = None if newest is None else _step_s(connection, newest)
        began = known[-1].started_at if known else row.created_at
        views.append(_view(connection, row, known, step_s, firing[row.id], stopped.get(row.id, 0) >= began, now))
    return views


def _view(
    connection: Connection,
    row: Row[Any],
    known: Sequence[Row[Any]],
    step_s: float | None,
    firing: Sequence[tuple[Severity, str]],
    stopped: bool,
    now: datetime,
) -> RunView:
    worst = max(firing, key=lambda pair: pair[0].rank, default=(Severity.INFO, ""))
    progress = None if row.progress_at is None else from_micros(row.progress_at)
    signs = pulse.Signs(
        phase=row.phase,
        created_at=from_micros(row.created_at),
        seen_at=from_micros(row.seen_at),
        progress_at=progress,
        step_s=step_s,
        firing=[severity for severity, _ in firing],
        worst_rule=worst[1],
        stop_applied=stopped,
    )
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
        created_at=signs.created_at,
        last_seen_at=signs.seen_at,
        last_progress_at=progress,
        last_step=row.last_step,
        phase=row.phase,
        kl_coef=_kl_coef(connection, known[-1].number if known else None, row.config),
        steps_per_minute=60.0 / step_s if step_s else None,
        firing=len(firing),
        tags=tuple(row.tags),
        config=row.config,
        capabilities=row.capabilities,
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


def _step_s(connection: Connection, attempt: int) -> float | None:
    query = (
        select(steps.c.time).where(steps.c.attempt == attempt).order_by(steps.c.step.desc()).limit(RECENT_STEPS)
    )
    return pulse.step_seconds([micros / 1e6 for micros in reversed(connection.scalars(query).all())])


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
