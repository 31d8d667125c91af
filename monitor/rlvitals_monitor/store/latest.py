"""The newest value of each metric of the runs that were heard of lately."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, func, select

from rlvitals_monitor.store.deletion import is_there
from rlvitals_monitor.store.numbers import join, to_micros
from rlvitals_monitor.store.tables import attempts, points, runs, series


@dataclass(frozen=True, slots=True, kw_only=True)
class Latest:
    """``value`` may be NaN or an infinity; a metric that is missing is not there."""

    run: str
    project: str
    metric: str
    step: int
    value: float


def latest_values(
    connection: Connection,
    now: datetime,
    *,
    within: timedelta,
    project: str | None = None,
    metrics: Collection[str] = (),
    limit: int = 10_000,
) -> list[Latest]:
    """Of the newest attempt of each run seen ``within`` that time; of all metrics where none is named."""
    other, before = attempts.alias(), points.alias()
    newest = select(func.max(other.c.ordinal)).where(other.c.run == runs.c.id).scalar_subquery()
    last = select(func.max(before.c.step)).where(before.c.series == series.c.number).scalar_subquery()
    query = (
        select(runs.c.id, runs.c.project, series.c.metric, points.c.step, points.c.value, points.c.kind)
        .select_from(runs)
        .join(attempts, (attempts.c.run == runs.c.id) & (attempts.c.ordinal == newest))
        .join(series, series.c.attempt == attempts.c.number)
        .join(points, (points.c.series == series.c.number) & (points.c.step == last))
        .where(is_there(), runs.c.seen_at >= to_micros(now - within))
        .order_by(runs.c.id, series.c.metric)
        .limit(limit)
    )
    if project is not None:
        query = query.where(runs.c.project == project)
    if metrics:
        query = query.where(series.c.metric.in_(metrics))
    return [
        Latest(run=r.id, project=r.project, metric=r.metric, step=r.step, value=join(r.value, r.kind))
        for r in connection.execute(query)
    ]
