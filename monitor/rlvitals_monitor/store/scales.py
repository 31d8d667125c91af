"""What an axis other than steps counts: a metric's own count, the sum of one, or the time since the first step."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, func, select

from rlvitals_monitor.store.rollups import COARSE, FINE
from rlvitals_monitor.store.tables import NumberKind, points, rollups, series, steps

TOLD_MAX = 5_000
"""Places that are read of one attempt; between them an axis is straight."""

Told = list[tuple[int, float]]


def read_count(connection: Connection, attempt: int, metric: str) -> Told:
    """(step, value) of a metric that counts up; what is no number is left out."""
    number = _number(connection, attempt, metric)
    if number is None:
        return []
    c = rollups.c
    width = _width(connection, number)
    if width > 1:
        query = select(c.last_step, c.last).where(c.series == number, c.width == width, c.last.is_not(None))
        return [(step, last) for step, last in connection.execute(query.order_by(c.bucket))]
    return _points(connection, number)


def read_sum(connection: Connection, attempt: int, metric: str) -> Told:
    """(step, sum of all up to it) of a metric that is counted anew in every step; what is no number adds
    nothing."""
    number = _number(connection, attempt, metric)
    if number is None:
        return []
    c = rollups.c
    width = _width(connection, number)
    if width > 1:
        query = select(c.last_step, c.total).where(c.series == number, c.width == width).order_by(c.bucket)
        rows = [(step, total) for step, total in connection.execute(query)]
    else:
        rows = _points(connection, number)
    total, told = 0.0, []
    for step, value in rows:
        total += value
        told.append((step, total))
    return told


def read_elapsed(connection: Connection, attempt: int) -> Told:
    """(step, seconds since the first step of the attempt) by the trainer's clock."""
    c = steps.c
    first, last, began = connection.execute(
        select(func.min(c.step), func.max(c.step), func.min(c.time)).where(c.attempt == attempt)
    ).one()
    if first is None:
        return []
    stride = (last - first) // TOLD_MAX + 1
    query = select(c.step, c.time).where(c.attempt == attempt)
    if stride > 1:
        query = query.where((c.step % stride == first % stride) | (c.step == last))
    return [(step, (time - began) / 1e6) for step, time in connection.execute(query.order_by(c.step))]


def _number(connection: Connection, attempt: int, metric: str) -> int | None:
    query = select(series.c.number).where(series.c.attempt == attempt, series.c.metric == metric)
    return connection.scalar(query)


def _width(connection: Connection, number: int) -> int:
    c = rollups.c
    total: Any = func.sum(c["count"])
    count = int(connection.scalar(select(total).where(c.series == number, c.width == COARSE)) or 0)
    return 1 if count <= TOLD_MAX else FINE if count <= TOLD_MAX * FINE else COARSE


def _points(connection: Connection, number: int) -> Told:
    c = points.c
    query = select(c.step, c.value).where(c.series == number, c.kind == NumberKind.FINITE).order_by(c.step)
    return [(step, value) for step, value in connection.execute(query)]
