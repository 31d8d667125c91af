"""Metrics for charts, O(pixels): raw while they fit, else buckets of points or of rollups.

Every bucket keeps its least and greatest finite value and a step of each kind of non-finite one, so whatever
happened is seen at every zoom. The database puts the buckets together: a few hundred rows a metric leave it.
tsdownsample's min-max would pick the same extremes from raw points, but not from rollups, which is what a million
steps are read from.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeAlias

from sqlalchemy import ColumnElement, Connection, case, func, literal_column, select

from rlvitals.contract.view import SeriesView
from rlvitals_monitor.store import horizon
from rlvitals_monitor.store.numbers import join
from rlvitals_monitor.store.rollups import COARSE, FINE
from rlvitals_monitor.store.series import missing_reasons
from rlvitals_monitor.store.tables import NumberKind, points, rollups, series

ROWS_PER_BUCKET = 24
"""Rows that may be read for one bucket of the answer; beyond it, the next coarser source is taken."""

Part: TypeAlias = dict[str, Any]
"""Of a view, what its points say."""
_EMPTY: Part = {"bucket": 1, "step": (), "value": ()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Steps ``first`` to ``last``, both included; None is open."""

    first: int | None = None
    last: int | None = None

    def has(self, step: int) -> bool:
        return (self.first is None or self.first <= step) and (self.last is None or step <= self.last)


def read_series(
    connection: Connection, run: str, attempt: tuple[int, str], metrics: Sequence[str], span: Span, limit: int
) -> list[SeriesView]:
    """One view for each metric, in their order; a metric that the attempt never had is an empty one.

    ``attempt`` is (number, id); ``limit`` bounds the points, or the buckets, of each view.
    """
    reasons = missing_reasons(connection, attempt[0])
    known = select(series.c.metric, series.c.number).where(
        series.c.attempt == attempt[0], series.c.metric.in_(metrics)
    )
    numbers = {row.metric: row.number for row in connection.execute(known)}
    parts = _read(connection, list(numbers.values()), span, limit, horizon.read(connection, attempt[0]))
    return [
        SeriesView(
            run=run,
            attempt=attempt[1],
            metric=metric,
            missing_reason=reasons.get(metric, ""),
            **parts.get(numbers.get(metric, -1), _EMPTY),
        )
        for metric in metrics
    ]


def _read(
    connection: Connection, numbers: Collection[int], span: Span, limit: int, kept_from: int | None
) -> dict[int, Part]:
    """Where some of the raw points have come of age (``kept_from``), the rollups tell what they were."""
    counted = _counts(connection, numbers, span)
    aged = kept_from is not None and (span.first is None or span.first < kept_from)
    raw = [] if aged else [n for n, count in counted.items() if count <= limit]
    wide = {n: _source(count, limit, aged) for n, count in counted.items() if n not in raw}
    found: dict[int, Part] = {}
    for width in (1, FINE, COARSE):
        of_width = [n for n, its in wide.items() if its == width]
        shifts: dict[int, list[int]] = {}
        for number, (first, last, count) in _extents(connection, of_width, span, width).items():
            if width == 1 and count <= limit:
                raw.append(number)
            else:
                shifts.setdefault(_shift(first, last, limit), []).append(number)
        for shift, some in shifts.items():
            found |= _bucketed(connection, some, span, width, shift)
    return found | _raw(connection, raw, span)


def _source(count: int, limit: int, aged: bool) -> int:
    """The width of the rows that are read."""
    if count <= limit * ROWS_PER_BUCKET and not aged:
        return 1
    return FINE if count <= limit * ROWS_PER_BUCKET * FINE else COARSE


def _shift(first: int, last: int, limit: int) -> int:
    """The smallest power of two, as its exponent, of which at most ``limit`` lie in first…last."""
    shift = 0
    while (last >> shift) - (first >> shift) + 1 > limit:
        shift += 1
    return shift


def _counts(connection: Connection, numbers: Collection[int], span: Span) -> dict[int, int]:
    """At least as many points as the span has: whole coarse buckets are counted."""
    c = rollups.c
    told = func.sum(c["count"] + c.nan + c.pos_inf + c.neg_inf)
    query = _within(select(c.series, told), rollups, numbers, span, COARSE).group_by(c.series)
    most = math.inf if span.first is None or span.last is None else max(0, span.last - span.first + 1)
    return {number: int(min(count, most)) for number, count in connection.execute(query)}


def _within(query: Any, table: Any, numbers: Collection[int], span: Span, width: int) -> Any:
    """Of some series, the rows of one width that overlap the span."""
    column = table.c.step if width == 1 else table.c.bucket
    query = query.where(table.c.series.in_(numbers))
    query = query if width == 1 else query.where(table.c.width == width)
    if span.first is not None:
        query = query.where(column >= span.first // width)
    return query if span.last is None else query.where(column <= span.last // width)


def _extents(
    connection: Connection, numbers: Collection[int], span: Span, width: int
) -> dict[int, tuple[int, int, int]]:
    """Of each series that has some: first row, last row, how many."""
    if not numbers:
        return {}
    table, column = (points, points.c.step) if width == 1 else (rollups, rollups.c.bucket)
    wanted = select(table.c.series, func.min(column), func.max(column), func.count())
    query = _within(wanted, table, numbers, span, width).group_by(table.c.series)
    return {number: (first, last, count) for number, first, last, count in connection.execute(query)}


def _raw(connection: Connection, numbers: Collection[int], span: Span) -> dict[int, Part]:
    if not numbers:
        return {}
    c = points.c
    query = _within(select(c.series, c.step, c.value, c.kind), points, numbers, span, 1)
    rows = connection.execute(query.order_by(c.series, c.step)).all()
    return {number: raw_part(list(own)) for number, own in groupby(rows, lambda row: row[0])}


def raw_part(rows: Sequence[Any]) -> Part:
    """``rows`` are a name of their series, step, value and kind, in the order of steps; at least one."""
    _, steps, values, kinds = zip(*rows, strict=True)
    nan, pos_inf, neg_inf = (
        tuple(step for step, its in zip(steps, kinds, strict=True) if its == kind) for kind in _KINDS.values()
    )
    return {
        "bucket": 1,
        "step": steps,
        "value": tuple(map(join, values, kinds)),
        "nan": nan,
        "pos_inf": pos_inf,
        "neg_inf": neg_inf,
    }


def _bucketed(
    connection: Connection, numbers: Collection[int], span: Span, width: int, shift: int
) -> dict[int, Part]:
    """Rows put together into buckets of one width, at multiples of it, so that none wanders."""
    laid = _points_together if width == 1 else _rollups_together
    rows = connection.execute(laid(numbers, span, width, shift)).all()
    return {
        number: _bucketed_part(list(own), span, width << shift)
        for number, own in groupby(rows, lambda row: row[0])
    }


def _bucketed_part(rows: Sequence[Any], span: Span, width: int) -> Part:
    """``rows`` have the columns of `_points_together`."""
    _, last_steps, low, high, nan, pos_inf, neg_inf, _, values, kinds = zip(*rows, strict=True)

    def marks(steps: Sequence[int | None]) -> tuple[int, ...]:
        return tuple(step for step in steps if step is not None and span.has(step))

    return {
        "bucket": width,
        "step": last_steps,
        "value": tuple(map(_value, values, kinds)),
        "low": low,
        "high": high,
        "nan": marks(nan),
        "pos_inf": marks(pos_inf),
        "neg_inf": marks(neg_inf),
    }


def _value(value: float | None, kind: int) -> float:
    """The last finite value of a bucket; where none is finite, its last value."""
    return value if kind == 0 and value is not None else join(0.0, kind)


def _points_together(numbers: Collection[int], span: Span, width: int, shift: int) -> Any:
    c = points.c

    def of(kind: NumberKind, column: Any) -> ColumnElement[Any]:
        return case((c.kind == int(kind), column))

    finite, cell = NumberKind.FINITE, _cell(c.step, shift)
    laid = _within(
        select(
            c.series,
            func.max(c.step).label("last_step"),
            func.min(of(finite, c.value)).label("low"),
            func.max(of(finite, c.value)).label("high"),
            *(func.max(of(kind, c.step)).label(f"{name}_step") for name, kind in _KINDS.items()),
            func.coalesce(func.max(of(finite, c.step)), func.max(c.step)).label("told_by"),
        ),
        points,
        numbers,
        span,
        width,
    )
    one = laid.group_by(c.series, cell).subquery()
    told = (c.series == one.c.series) & (c.step == one.c.told_by)
    return select(one, c.value, c.kind).join(points, told).order_by(one.c.series, one.c.last_step)


def _rollups_together(numbers: Collection[int], span: Span, width: int, shift: int) -> Any:
    c, cell = rollups.c, _cell(rollups.c.bucket, shift)
    finite = func.max(case((c.last.is_not(None), c.bucket)))
    laid = _within(
        select(
            c.series,
            func.max(c.last_step).label("last_step"),
            func.min(c.low).label("low"),
            func.max(c.high).label("high"),
            *(func.max(c[f"{name}_step"]).label(f"{name}_step") for name in _KINDS),
            func.coalesce(finite, func.max(c.bucket)).label("told_by"),
        ),
        rollups,
        numbers,
        span,
        width,
    )
    one = laid.group_by(c.series, cell).subquery()
    told = (c.series == one.c.series) & (c.width == width) & (c.bucket == one.c.told_by)
    kind = case(
        (c.last.is_not(None), int(NumberKind.FINITE)),
        (c.pos_inf_step.is_not(None), int(NumberKind.POS_INF)),
        (c.neg_inf_step.is_not(None), int(NumberKind.NEG_INF)),
        else_=int(NumberKind.NAN),
    )
    laid_out = select(one, c.last.label("value"), kind.label("kind")).join(rollups, told)
    return laid_out.order_by(one.c.series, one.c.last_step)


_KINDS: Mapping[str, NumberKind] = {
    "nan": NumberKind.NAN,
    "pos_inf": NumberKind.POS_INF,
    "neg_inf": NumberKind.NEG_INF,
}


def _cell(column: Any, shift: int) -> ColumnElement[Any]:
    """Shifted and not divided: a division rounds towards zero, and steps may be negative. Written out, since
    PostgreSQL takes two parameters for two things."""
    return column.op(">>")(literal_column(str(shift)))  # type: ignore[no-any-return]
