"""Buckets of 64 and 4,096 steps beside the points, so that a chart of any length reads O(pixels).

A bucket keeps the least, greatest, summed and last *finite* value, how many there were, and for NaN, +Inf and -Inf
how many and the last step with one: a spike or a NaN can be thinned out of no chart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, select

from rlvitals_monitor.store.bulk import Upsert
from rlvitals_monitor.store.numbers import split
from rlvitals_monitor.store.tables import points, rollups

FINE, COARSE = 64, 4096
WIDTHS = (FINE, COARSE)
TOTAL_MAX = 1e300
"""A bucket's sum is kept within this bound: PostgreSQL fails a statement whose addition overflows."""

Point = tuple[int, int]
"""(series, step)."""


@dataclass(slots=True)
class Bucket:
    """One row of ``rollups`` after its key, in the table's order."""

    low: float | None = None
    high: float | None = None
    total: float = 0.0
    count: int = 0
    last: float | None = None
    last_step: int = 0
    nan: int = 0
    pos_inf: int = 0
    neg_inf: int = 0
    nan_step: int | None = None
    pos_inf_step: int | None = None
    neg_inf_step: int | None = None

    def add(self, step: int, value: float, kind: int) -> None:
        """Takes in one point; steps come in rising order."""
        self.last_step = step
        if kind == 0:
            self.low = value if self.low is None or value < self.low else self.low
            self.high = value if self.high is None or value > self.high else self.high
            self.total = _bounded(self.total + value)
            self.count += 1
            self.last = value
        elif kind == 1:
            self.nan, self.nan_step = self.nan + 1, step
        elif kind == 2:
            self.pos_inf, self.pos_inf_step = self.pos_inf + 1, step
        else:
            self.neg_inf, self.neg_inf_step = self.neg_inf + 1, step

    def absorb(self, later: Bucket) -> None:
        """Takes in a bucket of later steps."""
        if later.low is not None and later.high is not None:
            self.low = later.low if self.low is None else min(self.low, later.low)
            self.high = later.high if self.high is None else max(self.high, later.high)
            self.last = later.last
        self.total = _bounded(self.total + later.total)
        self.count += later.count
        self.last_step = later.last_step
        self.nan += later.nan
        self.pos_inf += later.pos_inf
        self.neg_inf += later.neg_inf
        self.nan_step = _latest(self.nan_step, later.nan_step)
        self.pos_inf_step = _latest(self.pos_inf_step, later.pos_inf_step)
        self.neg_inf_step = _latest(self.neg_inf_step, later.neg_inf_step)


COLUMNS = tuple(Bucket.__dataclass_fields__)


def _bounded(total: float) -> float:
    return min(max(total, -TOTAL_MAX), TOTAL_MAX)


def _latest(before: int | None, after: int | None) -> int | None:
    return before if after is None else after


_SUM = "rollups.total + excluded.total"
_KEPT_LAST = "excluded.last IS NULL OR (rollups.last IS NOT NULL AND rollups.last_step > excluded.last_step)"
_add = Upsert(
    rollups,
    {
        "low": "CASE WHEN rollups.low IS NULL OR excluded.low < rollups.low"
        " THEN excluded.low ELSE rollups.low END",
        "high": "CASE WHEN rollups.high IS NULL OR excluded.high > rollups.high"
        " THEN excluded.high ELSE rollups.high END",
        "total": f"CASE WHEN {_SUM} > {TOTAL_MAX!r} THEN {TOTAL_MAX!r}"
        f" WHEN {_SUM} < -{TOTAL_MAX!r} THEN -{TOTAL_MAX!r} ELSE {_SUM} END",
        "count": "rollups.count + excluded.count",
        "last": f"CASE WHEN {_KEPT_LAST} THEN rollups.last ELSE excluded.last END",
        "last_step": "CASE WHEN excluded.last_step > rollups.last_step"
        " THEN excluded.last_step ELSE rollups.last_step END",
        **{kind: f"rollups.{kind} + excluded.{kind}" for kind in ("nan", "pos_inf", "neg_inf")},
        **{
            f"{kind}_step": f"CASE WHEN rollups.{kind}_step IS NULL OR excluded.{kind}_step > rollups.{kind}_step"
            f" THEN excluded.{kind}_step ELSE rollups.{kind}_step END"
            for kind in ("nan", "pos_inf", "neg_inf")
        },
    },
)
_replace = Upsert(rollups)


def add(connection: Connection, new: Mapping[Point, float]) -> None:
    """Adds points that were not there before."""
    fine: dict[tuple[int, int], Bucket] = {}
    for series, step in sorted(new):
        bucket = fine.get((series, step // FINE))
        if bucket is None:
            bucket = fine[series, step // FINE] = Bucket()
        bucket.add(step, *split(new[series, step]))
    _add.write(connection, [*_rows(FINE, fine), *_rows(COARSE, _coarsen(fine))])


def rebuild(connection: Connection, changed: Iterable[Point]) -> None:
    """Makes the buckets of overwritten points anew: fine ones from points, coarse ones from fine ones."""
    changed = set(changed)
    fine_keys = sorted({(series, step // FINE) for series, step in changed})
    coarse_keys = sorted({(series, step // COARSE) for series, step in changed})
    _replace.write(connection, _rows(FINE, {key: _from_points(connection, *key) for key in fine_keys}))
    _replace.write(connection, _rows(COARSE, {key: _from_fine(connection, *key) for key in coarse_keys}))


def _coarsen(fine: Mapping[tuple[int, int], Bucket]) -> dict[tuple[int, int], Bucket]:
    coarse: dict[tuple[int, int], Bucket] = {}
    for (series, number), bucket in fine.items():
        coarse.setdefault((series, number // (COARSE // FINE)), Bucket()).absorb(bucket)
    return coarse


def _rows(width: int, buckets: Mapping[tuple[int, int], Bucket]) -> list[tuple[object, ...]]:
    return [(series, width, number, *_values(bucket)) for (series, number), bucket in buckets.items()]


def _values(bucket: Bucket) -> tuple[object, ...]:
    return tuple(getattr(bucket, name) for name in COLUMNS)


def _from_points(connection: Connection, series: int, number: int) -> Bucket:
    bucket, first = Bucket(), number * FINE
    rows = connection.execute(
        select(points.c.step, points.c.value, points.c.kind)
        .where(points.c.series == series, points.c.step.between(first, first + FINE - 1))
        .order_by(points.c.step)
    )
    for step, value, kind in rows:
        bucket.add(step, value, kind)
    return bucket


def _from_fine(connection: Connection, series: int, number: int) -> Bucket:
    bucket, each = Bucket(), COARSE // FINE
    columns = [rollups.c[name] for name in COLUMNS]
    rows = connection.execute(
        select(*columns)
        .where(
            rollups.c.series == series,
            rollups.c.width == FINE,
            rollups.c.bucket.between(number * each, number * each + each - 1),
        )
        .order_by(rollups.c.bucket)
    )
    for row in rows:
        bucket.absorb(Bucket(*row))
    return bucket
