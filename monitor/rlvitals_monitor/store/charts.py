"""One metric for a chart, O(pixels): raw while it fits, else buckets of points or of rollups.

Every bucket keeps its least and greatest finite value and a step of each kind of non-finite one, so whatever
happened is seen at every zoom. tsdownsample's min-max would pick the same extremes from raw points, but not from
rollups, which is what a million steps are read from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, func, select

from rlvitals.contract.view import SeriesView
from rlvitals_monitor.store import horizon
from rlvitals_monitor.store.numbers import join
from rlvitals_monitor.store.rollups import COARSE, FINE
from rlvitals_monitor.store.series import missing_reasons
from rlvitals_monitor.store.tables import NumberKind, points, rollups, series

ROWS_PER_BUCKET = 24
"""Rows that may be read for one bucket of the answer; beyond it, the next coarser source is taken."""

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Steps ``first`` to ``last``, both included; None is open."""

    first: int | None = None
    last: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """Points or rollups in step order. A step without its kind of value has ``has`` False there."""

    step: Ints
    value: Floats
    low: Floats
    high: Floats
    marks: tuple[Ints, Ints, Ints]
    has: tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]


def read_series(
    connection: Connection, run: str, attempt: tuple[int, str], metrics: list[str], span: Span, limit: int
) -> list[SeriesView]:
    """One view for each metric, in their order; a metric that the attempt never had is an empty one.

    ``attempt`` is (number, id); ``limit`` bounds the points, or the buckets, of each view.
    """
    reasons = missing_reasons(connection, attempt[0])
    kept_from = horizon.read(connection, attempt[0])
    known = select(series.c.metric, series.c.number).where(
        series.c.attempt == attempt[0], series.c.metric.in_(metrics)
    )
    numbers = {row.metric: row.number for row in connection.execute(known)}
    views = []
    for metric in metrics:
        frame: dict[str, Any] = {
            "run": run,
            "attempt": attempt[1],
            "metric": metric,
            "missing_reason": reasons.get(metric, ""),
        }
        number = numbers.get(metric)
        part = _EMPTY if number is None else _read(connection, number, span, limit, kept_from)
        views.append(SeriesView(**frame, **part))
    return views


_EMPTY: dict[str, Any] = {"bucket": 1, "step": (), "value": ()}


def _read(connection: Connection, number: int, span: Span, limit: int, kept_from: int | None) -> dict[str, Any]:
    """Where some of the raw points have come of age (``kept_from``), the rollups tell what they were."""
    count = _count(connection, number, span)
    if kept_from is not None and (span.first is None or span.first < kept_from):
        width = FINE if count <= limit * ROWS_PER_BUCKET * FINE else COARSE
        return _bucketed(_read_rollups(connection, number, span, width), limit, width)
    if count <= limit:
        return _raw(_read_points(connection, number, span))
    if count <= limit * ROWS_PER_BUCKET:
        rows = _read_points(connection, number, span)
        return _raw(rows) if len(rows.step) <= limit else _bucketed(rows, limit, 1)
    width = FINE if count <= limit * ROWS_PER_BUCKET * FINE else COARSE
    return _bucketed(_read_rollups(connection, number, span, width), limit, width)


def _count(connection: Connection, number: int, span: Span) -> int:
    """At least as many points as the span has: whole coarse buckets are counted."""
    c = rollups.c
    query = select(func.sum(c["count"] + c.nan + c.pos_inf + c.neg_inf)).where(
        c.series == number, c.width == COARSE
    )
    counted = int(connection.scalar(_within(query, c.bucket, span, COARSE)) or 0)
    if span.first is None or span.last is None:
        return counted
    return min(counted, max(0, span.last - span.first + 1))


def _within(query: Any, column: Any, span: Span, width: int) -> Any:
    if span.first is not None:
        query = query.where(column >= span.first // width)
    if span.last is not None:
        query = query.where(column <= span.last // width)
    return query


def _read_points(connection: Connection, number: int, span: Span) -> _Rows:
    c = points.c
    query = _within(select(c.step, c.value, c.kind).where(c.series == number), c.step, span, 1)
    found = connection.execute(query.order_by(c.step)).all()
    step = np.array([row[0] for row in found], np.int64)
    value = np.array([row[1] if row[2] == 0 else join(row[1], row[2]) for row in found], np.float64)
    kind = np.array([row[2] for row in found], np.int8)
    finite = np.where(kind == NumberKind.FINITE, value, np.nan)
    of_kind = (kind == NumberKind.NAN, kind == NumberKind.POS_INF, kind == NumberKind.NEG_INF)
    return _Rows(step=step, value=value, low=finite, high=finite, marks=(step, step, step), has=of_kind)


def _read_rollups(connection: Connection, number: int, span: Span, width: int) -> _Rows:
    c = rollups.c
    columns = (c.last_step, c.last, c.low, c.high, c.nan_step, c.pos_inf_step, c.neg_inf_step)
    query = _within(select(*columns).where(c.series == number, c.width == width), c.bucket, span, width)
    found = connection.execute(query.order_by(c.bucket)).all()
    columns_of = list(zip(*found, strict=True)) or [()] * len(columns)
    # None becomes NaN, which here says "no finite value in this bucket"; what the value was is in the marks.
    last, low, high = (np.array(columns_of[i], np.float64) for i in (1, 2, 3))
    marks = tuple(np.array([s or 0 for s in columns_of[i]], np.int64) for i in (4, 5, 6))
    has = tuple(np.array([s is not None for s in columns_of[i]], np.bool_) for i in (4, 5, 6))
    value = np.where(np.isnan(last), np.select([has[1], has[2]], [np.inf, -np.inf], np.nan), last)
    step = np.array(columns_of[0], np.int64)
    return _Rows(step=step, value=value, low=low, high=high, marks=marks, has=has)  # type: ignore[arg-type]


def _raw(rows: _Rows) -> dict[str, Any]:
    nan, pos_inf, neg_inf = (tuple(rows.step[has].tolist()) for has in rows.has)
    return {
        "bucket": 1,
        "step": tuple(rows.step.tolist()),
        "value": tuple(rows.value.tolist()),
        "nan": nan,
        "pos_inf": pos_inf,
        "neg_inf": neg_inf,
    }


def _bucketed(rows: _Rows, limit: int, least: int) -> dict[str, Any]:
    """Rows put together into at most ``limit`` buckets of one width, at multiples of it, so that none wanders."""
    if not len(rows.step):
        return _EMPTY
    width = _width(int(rows.step[0]), int(rows.step[-1]), limit, least)
    bucket = rows.step // width
    starts = np.flatnonzero(np.r_[True, bucket[1:] != bucket[:-1]])
    ends = np.r_[starts[1:], len(bucket)] - 1
    nan, pos_inf, neg_inf = (_last_marks(m, h, bucket) for m, h in zip(rows.marks, rows.has, strict=True))
    return {
        "bucket": width,
        "step": tuple(rows.step[ends].tolist()),
        "value": tuple(_last_values(rows.value, starts, ends)),
        "low": tuple(_optional(np.fmin.reduceat(rows.low, starts))),
        "high": tuple(_optional(np.fmax.reduceat(rows.high, starts))),
        "nan": nan,
        "pos_inf": pos_inf,
        "neg_inf": neg_inf,
    }


def _width(first: int, last: int, limit: int, least: int) -> int:
    """The smallest power of two times ``least`` that makes at most ``limit`` buckets of first…last."""
    width = least
    while last // width - first // width + 1 > limit:
        width *= 2
    return width


def _last_values(value: Floats, starts: Ints, ends: Ints) -> list[float]:
    """The last finite value of each bucket; its last value where none is finite."""
    position = np.where(np.isfinite(value), np.arange(len(value)), -1)
    best = np.maximum.reduceat(position, starts)
    return list(value[np.where(best >= starts, best, ends)].tolist())


def _last_marks(marks: Ints, has: NDArray[np.bool_], bucket: Ints) -> tuple[int, ...]:
    """One step for each bucket that has such a value: the last."""
    at, of = marks[has], bucket[has]
    if not len(at):
        return ()
    last = np.r_[of[1:] != of[:-1], True]
    return tuple(at[last].tolist())


def _optional(values: Floats) -> list[float | None]:
    return [None if value != value else value for value in values.tolist()]
