"""Rows of ``runs`` as what readers see of them. A run's state is derived at each reading, never stored.

A thousand runs cost as many statements as one: whatever is asked of a run is asked of all of them at once.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import JSON, Connection, Row, String, cast, func, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from rlvitals.contract.alert import AlertState, Severity
from rlvitals.contract.codec import DecodeError, decode_number
from rlvitals.contract.command import CommandKind, CommandState
from rlvitals.contract.hooks import HookTableView
from rlvitals.contract.view import AttemptView, RunView
from rlvitals_monitor.store import handshake, hooks, pulse
from rlvitals_monitor.store.knobs import knobs_of
from rlvitals_monitor.store.numbers import from_micros, join
from rlvitals_monitor.store.tables import alerts, attempts, commands, points, runs, series, steps, writers

RECENT_STEPS = 64
"""Steps from which the usual time of a step is taken."""
RUNS_AT_ONCE = 1_000
"""Of which one statement asks: databases take some ten thousand parameters."""
READ_LATER = frozenset({"tail", "import"})
"""What names itself so reads a log: its steps bear the time at which they were read, which is no rate."""
HEAVY = ("config", "capabilities", "knobs", "notes")
"""Columns that a row of a list does without."""


class _Told(FunctionElement[Any]):
    """Of a config the values of ``kl_coef`` and ``world_size`` as a list, so that the whole need not be read."""

    type = JSON()
    inherit_cache = True


@compiles(_Told)
def _build(element: _Told, compiler: Any, **options: Any) -> str:
    config = compiler.process(element.clauses, **options)
    return f"json_build_array({config} -> 'kl_coef', {config} -> 'world_size')"


@compiles(_Told, "sqlite")
def _extract(element: _Told, compiler: Any, **options: Any) -> str:
    """Of two paths it keeps what is true or beyond a double; of one it would make numbers of them."""
    config = compiler.process(element.clauses, **options)
    return f"json_extract({config}, '$.kl_coef', '$.world_size')"


_TOLD = _Told(runs.c.config).label("told")
WHOLE = (*runs.c, _TOLD)
LIGHT = (*(column for column in runs.c if column.name not in HEAVY), _TOLD)


@dataclass(frozen=True, slots=True, kw_only=True)
class _About:
    """What other tables say of the runs: by run, or by the number of its newest attempt."""

    attempts: Mapping[str, Sequence[Row[Any]]]
    busy: Mapping[int, int] = field(default_factory=dict)
    firing: Mapping[str, Sequence[tuple[Severity, str]]] = field(default_factory=dict)
    stopped: Mapping[str, int] = field(default_factory=dict)
    hooks: Mapping[int, Sequence[HookTableView]] = field(default_factory=dict)
    times: Mapping[int, Sequence[float]] = field(default_factory=dict)
    kl_coefs: Mapping[int, float] = field(default_factory=dict)


def views(connection: Connection, rows: Sequence[Row[Any]], now: datetime, *, whole: bool) -> list[RunView]:
    """In the order of ``rows``, which have the columns `WHOLE`, or `LIGHT` ones only."""
    made: list[RunView] = []
    for start in range(0, len(rows), RUNS_AT_ONCE):
        some = rows[start : start + RUNS_AT_ONCE]
        about = _read_about(connection, [row.id for row in some])
        made += [_view(row, about, now, whole=whole) for row in some]
    return made


def attempts_of(connection: Connection, ids: Iterable[str]) -> Mapping[str, list[Row[Any]]]:
    """run → its attempts, the newest last."""
    query = select(attempts).where(attempts.c.run.in_(list(ids))).order_by(attempts.c.ordinal)
    grouped: dict[str, list[Row[Any]]] = defaultdict(list)
    for row in connection.execute(query):
        grouped[row.run].append(row)
    return grouped


def step_times(connection: Connection, numbers: Iterable[int]) -> Mapping[int, Sequence[float]]:
    """Attempt number → the times of its last steps in seconds, rising."""
    last = (
        select(steps.c.time)
        .where(steps.c.attempt == attempts.c.number)
        .order_by(steps.c.step.desc())
        .limit(RECENT_STEPS)
        .correlate(attempts)
        .subquery()
    )
    joined = select(func.aggregate_strings(cast(last.c.time, String), ",")).scalar_subquery()
    query = select(attempts.c.number, joined).where(attempts.c.number.in_(list(numbers)))
    found = connection.execute(query)
    return {number: sorted(int(micros) / 1e6 for micros in told.split(",")) for number, told in found if told}


def signs(
    row: Row[Any],
    newest: Row[Any] | None,
    *,
    tables: Sequence[HookTableView],
    times: Sequence[float],
    firing: Sequence[tuple[Severity, str]] = (),
    stopped: int | None = None,
) -> pulse.Signs:
    """Of the newest attempt: what an earlier one did says nothing of this one."""
    began = row.created_at if newest is None else newest.started_at
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


def _read_about(connection: Connection, ids: Sequence[str]) -> _About:
    known = attempts_of(connection, ids)
    newest = [some[-1].number for some in known.values()]
    return _About(
        attempts=known,
        busy=_busy(connection, ids),
        firing=_firing(connection, newest),
        stopped=_stops(connection, ids),
        hooks=hooks.read_tables(connection, newest),
        times=step_times(connection, newest),
        kl_coefs=_kl_coefs(connection, newest),
    )


def _view(row: Row[Any], about: _About, now: datetime, *, whole: bool) -> RunView:
    known = about.attempts.get(row.id, ())
    newest = known[-1] if known else None
    number = -1 if newest is None else newest.number
    felt_signs = signs(
        row,
        newest,
        tables=about.hooks.get(number, ()),
        times=about.times.get(number, ()),
        firing=about.firing.get(row.id, ()),
        stopped=about.stopped.get(row.id),
    )
    felt = pulse.take(felt_signs, now)
    rate = 60.0 / felt_signs.step_s if felt_signs.step_s and row.framework not in READ_LATER else None
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
        last_seen_at=felt_signs.seen_at,
        last_progress_at=None if row.progress_at is None else from_micros(row.progress_at),
        last_step=row.last_step,
        phase=row.phase,
        kl_coef=about.kl_coefs.get(number, _told_number(row.told[0])),
        steps_per_minute=rate,
        firing=len(felt_signs.firing),
        critical=sum(severity is Severity.CRITICAL for severity in felt_signs.firing),
        warnings=sum(severity is Severity.WARNING for severity in felt_signs.firing),
        gpu_hours=_gpu_hours(row, known, about.busy),
        tags=tuple(row.tags),
        owner=row.owner,
        labels=tuple(row.labels),
        archived_at=None if row.archived_at is None else from_micros(row.archived_at),
        **_heavy(row, known) if whole else {},
    )


def _heavy(row: Row[Any], known: Sequence[Row[Any]]) -> dict[str, Any]:
    return {
        "config": row.config,
        "capabilities": row.capabilities,
        "knobs": knobs_of(row.knobs),
        "notes": row.notes,
        "attempts": tuple(_attempt_view(attempt) for attempt in known),
    }


def _attempt_view(row: Row[Any]) -> AttemptView:
    return AttemptView(
        id=row.id,
        ordinal=row.ordinal,
        started_at=from_micros(row.started_at),
        first_step=row.first_step,
        last_step=row.last_step,
    )


def _told_number(value: object) -> float | None:
    """A number of a run's config, which may hold anything."""
    try:
        return decode_number(value)
    except DecodeError:
        return None


def _gpu_hours(row: Row[Any], known: Sequence[Row[Any]], busy: Mapping[int, int]) -> float | None:
    ranks = _told_number(row.told[1])
    if ranks is None or not math.isfinite(ranks) or ranks <= 0 or row.framework in READ_LATER:
        return None
    return ranks * sum(busy.get(attempt.number, 0) for attempt in known) / 3.6e9


def _busy(connection: Connection, ids: Sequence[str]) -> Mapping[int, int]:
    """Attempt number → how long it went on, in microseconds: by our clock while we heard it, by the trainer's from
    its first step to its last, the longer of the two. A run that was sent later is heard in a moment."""
    of_this = select(steps.c.time).where(steps.c.attempt == writers.c.attempt).correlate(writers).limit(1)
    first = of_this.order_by(steps.c.step).scalar_subquery()
    last = of_this.order_by(steps.c.step.desc()).scalar_subquery()
    heard = func.max(writers.c.seen_at) - attempts.c.started_at
    query = (
        select(writers.c.attempt, heard.label("heard"), (last - first).label("told"))
        .join(attempts, attempts.c.number == writers.c.attempt)
        .where(attempts.c.run.in_(ids))
        .group_by(writers.c.attempt, attempts.c.started_at)
    )
    return {row.attempt: max(0, row.heard, row.told or 0) for row in connection.execute(query)}


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


def _kl_coefs(connection: Connection, newest: Iterable[int]) -> Mapping[int, float]:
    """Attempt number → the last value that its trainer reported."""
    every = points.alias()
    last = select(func.max(every.c.step)).where(every.c.series == series.c.number).correlate(series)
    query = (
        select(series.c.attempt, points.c.value, points.c.kind)
        .select_from(series)
        .join(points, (points.c.series == series.c.number) & (points.c.step == last.scalar_subquery()))
        .where(series.c.attempt.in_(list(newest)), series.c.metric == "kl.coef")
    )
    return {row.attempt: join(row.value, row.kind) for row in connection.execute(query)}
