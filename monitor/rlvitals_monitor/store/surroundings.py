"""What was measured around one step of a run: the attempt that it belongs to, and some metrics' points."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, select

from rlvitals_monitor.store.numbers import from_micros, join, to_micros
from rlvitals_monitor.store.tables import attempts, points, series


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptSpan:
    """An attempt's steps, None where it has none. ``newest``: none began after it."""

    number: int
    id: str
    started_at: datetime
    first_step: int | None
    last_step: int | None
    newest: bool


def attempt_at(connection: Connection, run: str, at: datetime) -> AttemptSpan | None:
    """The attempt of a run that was under way at ``at`` by our clock; None where it has none."""
    rows = connection.execute(
        select(attempts).where(attempts.c.run == run).order_by(attempts.c.ordinal.desc())
    ).all()
    found = next((row for row in rows if row.started_at <= to_micros(at)), rows[-1] if rows else None)
    if found is None:
        return None
    return AttemptSpan(
        number=found.number,
        id=found.id,
        started_at=from_micros(found.started_at),
        first_step=found.first_step,
        last_step=found.last_step,
        newest=found is rows[0],
    )


def read_points(
    connection: Connection, attempt_number: int, metrics: Iterable[str], first: int, last: int
) -> dict[str, list[tuple[int, float]]]:
    """metric → (step, value) in order of steps, both ends included; NaN and the infinities are themselves."""
    rows = connection.execute(
        select(series.c.metric, points.c.step, points.c.value, points.c.kind)
        .join(points, points.c.series == series.c.number)
        .where(
            series.c.attempt == attempt_number,
            series.c.metric.in_(list(metrics)),
            points.c.step.between(first, last),
        )
        .order_by(series.c.metric, points.c.step)
    )
    found: dict[str, list[tuple[int, float]]] = {}
    for metric, step, value, kind in rows:
        found.setdefault(metric, []).append((step, join(value, kind)))
    return found
