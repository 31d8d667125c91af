"""Reads what was stored: steps for the rules, series for charts, extremes and histograms for the closer look."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Row, Select, func, select

from rlvitals.contract import codec
from rlvitals.contract.report import Json
from rlvitals.contract.view import ExtremeView, HistogramView, MetricView
from rlvitals_monitor.store import horizon
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.numbers import from_micros, join, to_micros
from rlvitals_monitor.store.rollups import COARSE
from rlvitals_monitor.store.tables import (
    extremes,
    histograms,
    points,
    rollups,
    runs,
    series,
    steps,
    writers,
)

STEPS_A_READ = 1_000
WRITER_PATIENCE = timedelta(seconds=30)
"""How long a step waits for another writer of the attempt that has not come to it since its last step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRow:
    """One step as the rules see it. Values may be NaN or infinite; a missing metric is absent."""

    step: int
    time: datetime
    values: Mapping[str, float]


def read_steps(
    connection: Connection, attempt_number: int, after_step: int | None, limit: int, now: datetime | None = None
) -> list[StepRow]:
    """At most ``limit`` steps above ``after_step`` (None: from the first on), in order.

    A step is held back until every writer of the attempt has passed it or has not advanced for
    `WRITER_PATIENCE` before ``now`` (default: the last word of any of them).
    """
    query = select(steps.c.step, steps.c.time).where(steps.c.attempt == attempt_number)
    if after_step is not None:
        query = query.where(steps.c.step > after_step)
    complete = _complete_through(connection, attempt_number, now)
    if complete is not None:
        query = query.where(steps.c.step <= complete)
    found = connection.execute(query.order_by(steps.c.step).limit(limit)).all()
    if not found:
        return []
    values = _values_between(connection, attempt_number, found[0].step, found[-1].step)
    return [StepRow(step=row.step, time=from_micros(row.time), values=values.get(row.step, {})) for row in found]


def every_step(store: Store, attempt_number: int) -> Iterator[tuple[int, datetime, Mapping[str, float]]]:
    """(step, time, values) of a whole attempt, in order; in readings that are short. Steps whose raw points have
    come of age are left out: to judge them without would be to judge what never was."""
    with store.read() as connection:
        kept_from = horizon.read(connection, attempt_number)
    last: int | None = None if kept_from is None else kept_from - 1
    while True:
        with store.read() as connection:
            rows = read_steps(connection, attempt_number, last, STEPS_A_READ)
        yield from ((row.step, row.time, row.values) for row in rows)
        if len(rows) < STEPS_A_READ:
            return
        last = rows[-1].step


def read_trend(
    connection: Connection, attempt_number: int, metric: str, through: int, limit: int
) -> list[tuple[int, float | None]]:
    """(step, value) of the last ``limit`` steps up to ``through``, in order; None where the metric is missing."""
    own = select(series.c.number).where(series.c.attempt == attempt_number, series.c.metric == metric)
    query = (
        select(steps.c.step, points.c.value, points.c.kind)
        .select_from(steps)
        .outerjoin(points, (points.c.series == own.scalar_subquery()) & (points.c.step == steps.c.step))
        .where(steps.c.attempt == attempt_number, steps.c.step <= through)
        .order_by(steps.c.step.desc())
        .limit(limit)
    )
    found = connection.execute(query).all()[::-1]
    return [(row.step, None if row.kind is None else join(row.value, row.kind)) for row in found]


def read_config(connection: Connection, run: str) -> Json:
    """The run's own settings; raises `LookupError` for an unknown run."""
    config = connection.scalar(select(runs.c.config).where(runs.c.id == run))
    if config is None:
        raise LookupError(f"there is no run {run!r}")
    return dict(config)


def missing_reasons(connection: Connection, attempt_number: int) -> dict[str, str]:
    """metric → why it could not be measured, for those whose last word was that they could not."""
    rows = connection.execute(
        select(series.c.metric, series.c.missing_reason).where(
            series.c.attempt == attempt_number,
            series.c.missing_step.is_not(None),
            series.c.missing_step > func.coalesce(_last_point_step(), series.c.missing_step - 1),
        )
    )
    return {row.metric: row.missing_reason for row in rows}


def read_metrics(connection: Connection, attempt_number: int) -> list[MetricView]:
    """Every metric that the attempt has or should have, by name."""
    reasons = missing_reasons(connection, attempt_number)
    counted = _counts(connection, attempt_number)
    last = _last_points(connection, attempt_number)
    known = connection.scalars(
        select(series.c.metric).where(series.c.attempt == attempt_number).order_by(series.c.metric)
    )
    return [
        MetricView(
            metric=metric,
            points=counted.get(metric, 0),
            last_step=last[metric][0] if metric in last else None,
            last_value=last[metric][1] if metric in last else None,
            missing_reason=reasons.get(metric, ""),
        )
        for metric in known
    ]


def read_extremes(
    connection: Connection, attempt_number: int, metric: str, first: int | None, last: int | None, limit: int
) -> list[ExtremeView]:
    """The newest ``limit`` extremes of a metric between two steps, in step order."""
    rows = _newest(connection, extremes, attempt_number, metric, first, last, limit)
    return [
        ExtremeView(
            metric=metric,
            step=row.step,
            value=join(row.value, row.kind),
            token_id=row.token_id,
            position=row.position,
            sample=row.sample,
            masked=row.masked,
            token=row.token,
        )
        for row in rows
    ]


def read_histograms(
    connection: Connection, attempt_number: int, metric: str, first: int | None, last: int | None, limit: int
) -> list[HistogramView]:
    """The newest ``limit`` histograms of a metric between two steps, in step order."""
    rows = _newest(connection, histograms, attempt_number, metric, first, last, limit)
    return [
        codec.decode(HistogramView, {"metric": metric, "step": row.step, "edges": row.edges, "counts": row.counts})
        for row in rows
    ]


def _complete_through(connection: Connection, attempt_number: int, now: datetime | None) -> int | None:
    """The last step that every advancing writer has passed; None when there is nobody to wait for."""
    rows = connection.execute(
        select(writers.c.last_step, writers.c.progress_at, writers.c.seen_at).where(
            writers.c.attempt == attempt_number, writers.c.last_step.is_not(None)
        )
    ).all()
    if len(rows) < 2:
        return None
    clock = max(row.seen_at for row in rows) if now is None else to_micros(now)
    patience = WRITER_PATIENCE // timedelta(microseconds=1)
    awaited = [row.last_step for row in rows if row.progress_at is not None and row.progress_at > clock - patience]
    return min(awaited, default=None)


def _values_between(
    connection: Connection, attempt_number: int, first: int, last: int
) -> dict[int, dict[str, float]]:
    known = select(series.c.number, series.c.metric).where(series.c.attempt == attempt_number)
    metrics = {row.number: row.metric for row in connection.execute(known)}
    rows = connection.execute(
        select(points.c.series, points.c.step, points.c.value, points.c.kind).where(
            points.c.series.in_(sorted(metrics)), points.c.step.between(first, last)
        )
    )
    values: dict[int, dict[str, float]] = {}
    for number, step, value, kind in rows:
        values.setdefault(step, {})[metrics[number]] = join(value, kind)
    return values


def _last_point_step() -> Any:
    return select(func.max(points.c.step)).where(points.c.series == series.c.number).scalar_subquery()


def _counts(connection: Connection, attempt_number: int) -> dict[str, int]:
    parts = rollups.c["count"] + rollups.c.nan + rollups.c.pos_inf + rollups.c.neg_inf
    rows = connection.execute(
        select(series.c.metric, func.sum(parts))
        .join(rollups, rollups.c.series == series.c.number)
        .where(series.c.attempt == attempt_number, rollups.c.width == COARSE)
        .group_by(series.c.metric)
    )
    return {metric: int(count) for metric, count in rows}


def _last_points(connection: Connection, attempt_number: int) -> dict[str, tuple[int, float]]:
    rows = connection.execute(
        select(series.c.metric, points.c.step, points.c.value, points.c.kind)
        .join(points, points.c.series == series.c.number)
        .where(series.c.attempt == attempt_number, points.c.step == _last_point_step().correlate(series))
    )
    return {metric: (step, join(value, kind)) for metric, step, value, kind in rows}


def _newest(
    connection: Connection,
    table: Any,
    attempt_number: int,
    metric: str,
    first: int | None,
    last: int | None,
    limit: int,
) -> Sequence[Row[Any]]:
    query: Select[Any] = (
        select(table)
        .join(series, series.c.number == table.c.series)
        .where(series.c.attempt == attempt_number, series.c.metric == metric)
    )
    if first is not None:
        query = query.where(table.c.step >= first)
    if last is not None:
        query = query.where(table.c.step <= last)
    return connection.execute(query.order_by(table.c.step.desc()).limit(limit)).all()[::-1]
