"""Which runs and attempts a retention concerns, and what of them is still there to be removed."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, func, select

from rlvitals_monitor.store.deletion import is_there
from rlvitals_monitor.store.numbers import to_micros
from rlvitals_monitor.store.tables import attempts, histograms, points, runs, series, texts


def unseen_since(connection: Connection, project: str, before: datetime, limit: int) -> list[str]:
    """Runs of a project of which nothing was heard since ``before``, the longest silent first."""
    query = select(runs.c.id).where(runs.c.project == project, is_there(), runs.c.seen_at < to_micros(before))
    return list(connection.scalars(query.order_by(runs.c.seen_at, runs.c.id).limit(limit)))


def is_unseen_since(connection: Connection, run: str, before: datetime) -> bool:
    """Asked again under the run's lock: it may have spoken meanwhile."""
    query = select(runs.c.seen_at).where(runs.c.id == run).with_for_update()
    seen_at = connection.scalar(query)
    return seen_at is not None and seen_at < to_micros(before)


def attempts_of(connection: Connection, project: str) -> list[int]:
    """Numbers of the attempts of a project's runs."""
    query = select(attempts.c.number).join(runs, runs.c.id == attempts.c.run)
    return list(connection.scalars(query.where(runs.c.project == project, is_there()).order_by(attempts.c.number)))


def has_points(connection: Connection, attempt_number: int, through: int) -> bool:
    """Raw points of steps up to ``through`` beside each metric's last one, which stays."""
    newest = points.alias()
    last = select(func.max(newest.c.step)).where(newest.c.series == series.c.number).scalar_subquery()
    query = select(points.c.step).join(series, series.c.number == points.c.series)
    old = query.where(series.c.attempt == attempt_number, points.c.step <= through, points.c.step < last)
    return connection.execute(old.limit(1)).first() is not None


def has_texts(connection: Connection, attempt_number: int, through: int) -> bool:
    query = select(texts.c.number).where(texts.c.attempt == attempt_number, texts.c.step <= through)
    return connection.execute(query.limit(1)).first() is not None


def has_histograms(connection: Connection, attempt_number: int, through: int) -> bool:
    query = select(histograms.c.step).join(series, series.c.number == histograms.c.series)
    old = query.where(series.c.attempt == attempt_number, histograms.c.step <= through)
    return connection.execute(old.limit(1)).first() is not None
