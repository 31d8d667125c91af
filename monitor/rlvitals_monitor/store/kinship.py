"""Runs held against each other: the first step at which two differ, and the healthy ones of a project."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection, func, select

from rlvitals.contract.alert import AlertState, Severity
from rlvitals.contract.report import Phase
from rlvitals_monitor.store.deletion import is_there
from rlvitals_monitor.store.tables import alerts, attempts, evaluations, points, runs, series

_FIRED = (AlertState.FIRING.value, AlertState.RESOLVED.value)
_GRAVE = (Severity.CRITICAL.value, Severity.WARNING.value)


def first_difference(connection: Connection, one: int, other: int, metric: str) -> int | None:
    """The first step that two attempts have both, with values of a metric that are not the same; None for none.
    NaN is the same as NaN."""
    mine, theirs = series.alias(), series.alias()
    a, b = points.alias(), points.alias()
    query = (
        select(a.c.step)
        .join(mine, mine.c.number == a.c.series)
        .join(b, b.c.step == a.c.step)
        .join(theirs, theirs.c.number == b.c.series)
        .where(mine.c.attempt == one, theirs.c.attempt == other)
        .where(mine.c.metric == metric, theirs.c.metric == metric)
        .where((a.c.value != b.c.value) | (a.c.kind != b.c.kind))
        .order_by(a.c.step)
        .limit(1)
    )
    return connection.scalar(query)


def healthy_runs(
    connection: Connection, project: str, without: Iterable[str], least_steps: int, limit: int
) -> list[str]:
    """The newest runs of a project with an attempt of that many judged steps, that did not fail, and of which no
    rule ever told a warning or worse. That a run was late or lost says nothing of its training."""
    judged = alerts.c.rule.not_like("rlvitals/%") & alerts.c.severity.in_(_GRAVE) & alerts.c.state.in_(_FIRED)
    sick = select(alerts.c.run).where(alerts.c.run == runs.c.id, judged).exists()
    length = (
        select(func.max(evaluations.c.step - attempts.c.first_step + 1))
        .join(attempts, attempts.c.number == evaluations.c.attempt)
        .where(attempts.c.run == runs.c.id)
    )
    query = (
        select(runs.c.id)
        .where(runs.c.project == project, runs.c.id.not_in(list(without)), runs.c.phase != Phase.FAILED.value)
        .where(is_there(), ~sick, length.scalar_subquery() >= least_steps)
        .order_by(runs.c.created_at.desc(), runs.c.id.desc())
        .limit(limit)
    )
    return list(connection.scalars(query))
