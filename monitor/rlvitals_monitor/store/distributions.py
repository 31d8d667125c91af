"""Histograms of one metric, evenly over the steps: what a heat map of a run of any length is drawn from."""

from __future__ import annotations

from sqlalchemy import Connection, func, select, union_all

from rlvitals.contract import codec
from rlvitals.contract.view import HistogramView
from rlvitals_monitor.store.charts import Span
from rlvitals_monitor.store.tables import histograms, series

STRETCHES_A_QUERY = 100
"""SQLite joins at most 500 selects."""


def read_spread(
    connection: Connection, attempt_number: int, metric: str, span: Span, columns: int
) -> list[HistogramView]:
    """At most ``columns`` of them, in step order: the last of each stretch of equally many steps.

    Each stretch is one look into the index, so that a million steps cost no more than a hundred.
    """
    known = select(series.c.number).where(series.c.attempt == attempt_number, series.c.metric == metric)
    number = connection.scalar(known)
    if number is None:
        return []
    least, greatest = _ends(connection, number, span)
    if least is None or greatest is None:
        return []
    steps = _last_steps(connection, number, least, greatest, columns)
    query = select(histograms).where(histograms.c.series == number, histograms.c.step.in_(steps))
    return [
        codec.decode(HistogramView, {"metric": metric, "step": row.step, "edges": row.edges, "counts": row.counts})
        for row in connection.execute(query.order_by(histograms.c.step))
    ]


def _ends(connection: Connection, number: int, span: Span) -> tuple[int | None, int | None]:
    """The first and the last step with a histogram."""
    c, ends = histograms.c, []
    for end in (func.min(c.step), func.max(c.step)):
        query = select(end).where(c.series == number)
        if span.first is not None:
            query = query.where(c.step >= span.first)
        if span.last is not None:
            query = query.where(c.step <= span.last)
        ends.append(connection.scalar(query))
    return ends[0], ends[1]


def _last_steps(connection: Connection, number: int, least: int, greatest: int, columns: int) -> list[int]:
    c, width = histograms.c, (greatest - least) // columns + 1
    starts = list(range(least, greatest + 1, width))
    found: list[int] = []
    for first in range(0, len(starts), STRETCHES_A_QUERY):
        lasts = [
            select(func.max(c.step)).where(c.series == number, c.step.between(start, start + width - 1))
            for start in starts[first : first + STRETCHES_A_QUERY]
        ]
        found += [step for step in connection.scalars(union_all(*lasts)) if step is not None]
    return found
