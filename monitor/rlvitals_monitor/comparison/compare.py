"""Reads several runs and puts them side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from rlvitals.contract.comparison import (
    Axis,
    ComparedMetric,
    ComparedRun,
    ComparisonView,
    HealthyBand,
    Likeness,
    Parting,
)
from rlvitals.contract.view import RunView, SeriesView
from rlvitals_monitor.comparison.axis import Ruler, lay
from rlvitals_monitor.comparison.band import make_band
from rlvitals_monitor.comparison.curves import course_of, curve_of
from rlvitals_monitor.comparison.parting import judge
from rlvitals_monitor.comparison.scale import Scale
from rlvitals_monitor.store import charts, kinship, runs
from rlvitals_monitor.store.charts import Span

JUDGED_POINTS = 2_000
"""Of a longer run, the test sees so many buckets."""
HEALTHY_RUNS = 8
HEALTHY_STEPS = 50
"""A shorter run has not shown that it is healthy."""
HEALTHY_POINTS = 240


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """``keys`` are runs, or ``run@attempt``. ``healthy``: None for the project's own, () for none."""

    keys: Sequence[str]
    metrics: Sequence[str]
    axis: Axis = Axis.STEP
    first: float | None = None
    last: float | None = None
    limit: int = 400
    healthy: Sequence[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    key: str
    view: RunView
    number: int
    attempt: str

    @property
    def where(self) -> tuple[int, str]:
        return self.number, self.attempt


def compare(connection: Connection, wish: Wish, now: datetime) -> ComparisonView:
    """Raises `NotFound` for a run or an attempt that is not there."""
    entries = [_enter(connection, key, now) for key in dict.fromkeys(wish.keys)]
    ruler = lay(connection, wish.axis, [entry.number for entry in entries])
    healthy, reason = _healthy(connection, entries, wish.healthy)
    whole = {e.key: _read(connection, e, wish.metrics, JUDGED_POINTS) for e in entries}
    drawn = {e.key: _drawn(connection, e, ruler, whole[e.key], wish) for e in entries}
    backs = [_read_healthy(connection, run, ruler, wish) for run in healthy]
    return ComparisonView(
        axis=wish.axis,
        counted=ruler.counted,
        runs=tuple(_compared(entry, ruler) for entry in entries),
        metrics=tuple(
            _metric(connection, metric, entries, ruler, whole, drawn, backs, wish) for metric in wish.metrics
        ),
        healthy=tuple(healthy),
        healthy_reason=reason,
    )


def _enter(connection: Connection, key: str, now: datetime) -> _Entry:
    """Without an attempt of its own, the newest with a step."""
    run, _, attempt = key.partition("@")
    view = runs.read_run(connection, run, now)
    stepped = [a.id for a in view.attempts if a.last_step is not None]
    chosen = attempt or (stepped[-1] if stepped else None)
    number, name = runs.find_attempt(connection, run, chosen)
    return _Entry(key=key, view=view, number=number, attempt=name)


def _compared(entry: _Entry, ruler: Ruler) -> ComparedRun:
    view = entry.view
    attempt = next(a for a in view.attempts if a.id == entry.attempt)
    return ComparedRun(
        key=entry.key,
        run=view.id,
        attempt=attempt.id,
        ordinal=attempt.ordinal,
        project=view.project,
        name=view.name,
        state=view.state,
        light=view.light,
        reason=view.reason,
        first_step=attempt.first_step,
        last_step=attempt.last_step,
        fault=ruler.fault(entry.number),
    )


def _healthy(
    connection: Connection, entries: Sequence[_Entry], wanted: Sequence[str] | None
) -> tuple[list[str], str]:
    if wanted is not None:
        chosen = list(dict.fromkeys(wanted))
        return chosen, "chosen by hand" if chosen else "no band was asked for"
    project = entries[0].view.project
    shown = [entry.view.id for entry in entries]
    found = kinship.healthy_runs(connection, project, shown, HEALTHY_STEPS, HEALTHY_RUNS)
    rule = f"{HEALTHY_STEPS} steps or more without a warning"
    if len(found) < 2:
        return [], f"a band needs two other runs of the project with {rule}, and it has {len(found)}"
    return found, f"the newest other runs of the project with {rule}"


def _read(
    connection: Connection, entry: _Entry, metrics: Sequence[str], limit: int, span: Span | None = None
) -> dict[str, SeriesView]:
    found = charts.read_series(connection, entry.view.id, entry.where, list(metrics), span or Span(), limit)
    return {series.metric: series for series in found}


def _drawn(
    connection: Connection, entry: _Entry, ruler: Ruler, whole: Mapping[str, SeriesView], wish: Wish
) -> Mapping[str, SeriesView]:
    zoomed = wish.first is not None or wish.last is not None
    small = all(series.bucket == 1 and len(series.step) <= wish.limit for series in whole.values())
    if small:
        return whole
    first, last = ruler.scales[entry.number].steps_between(wish.first, wish.last) if zoomed else (None, None)
    return _read(connection, entry, wish.metrics, wish.limit, Span(first=first, last=last))


_Back = tuple[Scale, Mapping[str, SeriesView]]


def _read_healthy(connection: Connection, run: str, ruler: Ruler, wish: Wish) -> _Back:
    number, attempt = runs.find_attempt(connection, run)
    scale = ruler.scale(connection, number)
    first, last = scale.steps_between(wish.first, wish.last)
    found = charts.read_series(
        connection, run, (number, attempt), list(wish.metrics), Span(first=first, last=last), HEALTHY_POINTS
    )
    return scale, {series.metric: series for series in found}


def _metric(
    connection: Connection,
    metric: str,
    entries: Sequence[_Entry],
    ruler: Ruler,
    whole: Mapping[str, Mapping[str, SeriesView]],
    drawn: Mapping[str, Mapping[str, SeriesView]],
    backs: Sequence[_Back],
    wish: Wish,
) -> ComparedMetric:
    curves = tuple(
        curve_of(e.key, drawn[e.key][metric], ruler.scales[e.number], wish.first, wish.last) for e in entries
    )
    first = [curve.at[0] for curve in curves if curve.at]
    last = [curve.at[-1] for curve in curves if curve.at]
    behind = [(scale, back[metric]) for scale, back in backs]
    courses = [course_of(series, scale) for scale, series in behind]
    band = make_band([(c.at, c.value) for c in courses], min(first), max(last)) if first else HealthyBand()
    partings = [_parting(connection, metric, entries[0], e, ruler, whole) for e in entries[1:]]
    return ComparedMetric(metric=metric, curves=curves, partings=tuple(partings), band=band)


def _parting(
    connection: Connection,
    metric: str,
    reference: _Entry,
    entry: _Entry,
    ruler: Ruler,
    whole: Mapping[str, Mapping[str, SeriesView]],
) -> Parting:
    one, two = whole[reference.key][metric], whole[entry.key][metric]
    for whose, series in (("the first run", one), ("it", two)):
        if not series.step:
            why = f": {series.missing_reason}" if series.missing_reason else ""
            reason = f"{whose} has no {metric}{why}"
            return Parting(key=entry.key, likeness=Likeness.NOT_JUDGED, reason=reason)
    here = course_of(one, ruler.scales[reference.number])
    there = course_of(two, ruler.scales[entry.number])
    within = max(one.bucket, two.bucket)
    by_step = ruler.axis is Axis.STEP
    verdict = judge(here, there, by_step=by_step and within == 1)
    unlike = by_step and verdict.likeness is not Likeness.NOT_JUDGED
    different = kinship.first_difference(connection, reference.number, entry.number, metric) if unlike else None
    return Parting(
        key=entry.key,
        likeness=verdict.likeness,
        reason=verdict.reason,
        at=None if verdict.here is None else float(here.at[verdict.here]),
        step=None if verdict.there is None else int(there.step[verdict.there]),
        reference_step=None if verdict.here is None else int(here.step[verdict.here]),
        within=within,
        different_step=different,
        points=verdict.points,
    )
