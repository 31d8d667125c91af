"""A series of the store as a curve on an axis."""

from __future__ import annotations

import numpy as np

from rlvitals.contract.comparison import ComparedCurve
from rlvitals.contract.view import SeriesView
from rlvitals_monitor.comparison.parting import Course
from rlvitals_monitor.comparison.scale import Floats, Scale


def course_of(series: SeriesView, scale: Scale) -> Course:
    at = scale.places(series.step)
    on = np.flatnonzero(np.isfinite(at))
    step = np.asarray(series.step, np.int64)
    return Course(at=at[on], step=step[on], value=np.asarray(series.value, np.float64)[on])


def curve_of(key: str, series: SeriesView, scale: Scale, first: float | None, last: float | None) -> ComparedCurve:
    """Its points between two places; a bucket counts by its last step."""
    at = scale.places(series.step)
    inside = np.isfinite(at) & (at >= _or(first, -np.inf)) & (at <= _or(last, np.inf))
    on = np.flatnonzero(inside).tolist()
    bucketed = series.bucket > 1
    return ComparedCurve(
        key=key,
        bucket=series.bucket,
        at=tuple(float(at[i]) for i in on),
        step=tuple(series.step[i] for i in on),
        value=tuple(series.value[i] for i in on),
        low=tuple(series.low[i] for i in on) if bucketed else (),
        high=tuple(series.high[i] for i in on) if bucketed else (),
        nan=_marks(series.nan, scale, first, last),
        pos_inf=_marks(series.pos_inf, scale, first, last),
        neg_inf=_marks(series.neg_inf, scale, first, last),
        off_axis=int(np.count_nonzero(~np.isfinite(at))),
        missing_reason=series.missing_reason,
    )


def _marks(steps: tuple[int, ...], scale: Scale, first: float | None, last: float | None) -> tuple[float, ...]:
    at: Floats = scale.places(steps)
    return tuple(at[np.isfinite(at) & (at >= _or(first, -np.inf)) & (at <= _or(last, np.inf))].tolist())


def _or(place: float | None, other: float) -> float:
    return other if place is None else place
