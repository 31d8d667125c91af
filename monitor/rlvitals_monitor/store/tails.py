"""The newest points of many metrics at once, for pages that append what is new to what they show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, select

from rlvitals.contract.view import SeriesView
from rlvitals_monitor.store import charts, horizon
from rlvitals_monitor.store.tables import points, series


def read_tails(
    connection: Connection, run: str, attempt: tuple[int, str], metrics: Sequence[str], first: int, limit: int
) -> list[SeriesView]:
    """The points from step ``first`` on, raw; a metric without one is left out, and no view says what is missing.

    Where they are more than ``limit`` a metric, or raw points have come of age, it is `charts.read_series`.
    ``attempt`` is (number, id).
    """
    number, name = attempt
    kept_from = horizon.read(connection, number)
    rows = _read_points(connection, number, metrics, first, limit * len(metrics) + 1)
    if len(rows) > limit * len(metrics) or (kept_from is not None and first < kept_from):
        return charts.read_series(connection, run, attempt, list(metrics), charts.Span(first=first), limit)
    found: dict[str, list[Any]] = {}
    for row in rows:
        found.setdefault(row.metric, []).append(row)
    return [
        SeriesView(run=run, attempt=name, metric=metric, **charts.raw_part(found[metric]))
        for metric in metrics
        if metric in found
    ]


def _read_points(
    connection: Connection, attempt_number: int, metrics: Sequence[str], first: int, most: int
) -> Sequence[Any]:
    query = (
        select(series.c.metric, points.c.step, points.c.value, points.c.kind)
        .join(points, points.c.series == series.c.number)
        .where(series.c.attempt == attempt_number, series.c.metric.in_(list(metrics)), points.c.step >= first)
        .order_by(series.c.metric, points.c.step)
        .limit(most)
    )
    return connection.execute(query).all()
