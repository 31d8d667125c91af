"""Raw points of an attempt as a table, window by window: a run of any length is never in memory at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, func, select

from rlvitals_monitor.store import deletion, horizon
from rlvitals_monitor.store.charts import Span
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.tables import NumberKind, attempts, points, series, steps

CELLS_A_WINDOW = 200_000
"""About as many numbers are in memory at once."""

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

_NOT_FINITE = {int(NumberKind.NAN): np.nan, int(NumberKind.POS_INF): np.inf, int(NumberKind.NEG_INF): -np.inf}


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What is read: some metrics of an attempt, between two steps. ``raw_from``: the raw points of earlier steps
    have come of age; None where none has."""

    run: str
    project: str
    attempt: str
    number: int
    metrics: tuple[str, ...]
    first: int
    last: int
    raw_from: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """Rows in step order. ``value`` has a row for each step and a column for each metric; where ``present`` is
    False it is missing, and the number there means nothing. ``time_us`` is 0 where ``timed`` is False: a step at
    which there was an evaluation alone.
    """

    step: Ints
    time_us: Ints
    timed: Flags
    value: Floats
    present: Flags


def find_source(
    connection: Connection, run: str, attempt: tuple[int, str], project: str, metrics: Sequence[str], span: Span
) -> Source:
    """``metrics`` empty: all that the attempt has, by name. Its bounds are those of what is stored now."""
    number, name = attempt
    known = select(series.c.metric).where(series.c.attempt == number).order_by(series.c.metric)
    first, last = _bounds(connection, number)
    return Source(
        run=run,
        project=project,
        attempt=name,
        number=number,
        metrics=tuple(dict.fromkeys(metrics)) or tuple(connection.scalars(known)),
        first=first if span.first is None else max(first, span.first),
        last=last if span.last is None else min(last, span.last),
        raw_from=horizon.read(connection, number),
    )


def read_frames(store: Store, source: Source) -> Iterator[Frame]:
    """All of it, in windows of steps that are short where steps are dense; raises `Gone` if the run is deleted
    meanwhile. No connection is held between two windows.
    """
    target = max(1, CELLS_A_WINDOW // max(1, len(source.metrics)))
    start, width = source.first, target
    while start <= source.last:
        with store.read() as connection:
            deletion.refuse_deleted(connection, source.run)
            frame = _read(connection, source, start, min(source.last, start + width - 1))
        if len(frame.step):
            yield frame
        start += width
        # a gap in the steps is passed over in windows that double
        width = target if len(frame.step) > target // 4 else width * 2


def _bounds(connection: Connection, number: int) -> tuple[int, int]:
    row = connection.execute(
        select(attempts.c.first_step, attempts.c.last_step).where(attempts.c.number == number)
    ).one()
    of_points = connection.execute(
        select(func.min(points.c.step), func.max(points.c.step))
        .join(series, series.c.number == points.c.series)
        .where(series.c.attempt == number)
    ).one()
    known = [step for step in (*row, *of_points) if step is not None]
    return (min(known), max(known)) if known else (0, -1)


def _read(connection: Connection, source: Source, first: int, last: int) -> Frame:
    numbers = _numbers(connection, source)
    found = connection.execute(
        select(points.c.series, points.c.step, points.c.value, points.c.kind).where(
            points.c.series.in_(list(numbers)), points.c.step.between(first, last)
        )
    ).all()
    of, at, value, kind = (np.array(column) for column in (zip(*found, strict=True) if found else ([],) * 4))
    times = _times(connection, source, first, last)
    step = np.union1d(at.astype(np.int64), times[0])
    shape = (len(step), len(source.metrics))
    table, present = np.zeros(shape, np.float64), np.zeros(shape, np.bool_)
    if found:
        columns = np.array([numbers[one] for one in of.tolist()], np.int64)
        rows = np.searchsorted(step, at)
        table[rows, columns] = _join(value.astype(np.float64), kind)
        present[rows, columns] = True
    time_us, timed = np.zeros(len(step), np.int64), np.zeros(len(step), np.bool_)
    places = np.searchsorted(step, times[0])
    time_us[places], timed[places] = times[1], True
    return Frame(step=step, time_us=time_us, timed=timed, value=table, present=present)


def _numbers(connection: Connection, source: Source) -> dict[int, int]:
    """Series number → column."""
    column = {metric: place for place, metric in enumerate(source.metrics)}
    known = select(series.c.number, series.c.metric).where(
        series.c.attempt == source.number, series.c.metric.in_(source.metrics)
    )
    return {row.number: column[row.metric] for row in connection.execute(known)}


def _times(connection: Connection, source: Source, first: int, last: int) -> tuple[Ints, Ints]:
    """Steps and their times; a step whose raw points have gone is no row without any."""
    kept = first if source.raw_from is None else max(first, source.raw_from)
    rows = connection.execute(
        select(steps.c.step, steps.c.time)
        .where(steps.c.attempt == source.number, steps.c.step.between(kept, last))
        .order_by(steps.c.step)
    ).all()
    return np.array([row[0] for row in rows], np.int64), np.array([row[1] for row in rows], np.int64)


def _join(value: Floats, kind: NDArray[np.int64]) -> Floats:
    """`numbers.join` of whole columns."""
    for number, special in _NOT_FINITE.items():
        value[kind == number] = special
    return value
