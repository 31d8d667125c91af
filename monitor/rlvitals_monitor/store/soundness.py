"""Whether a store holds together. Every check is one question, told in words, that reads and changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sqlalchemy import Connection, String, Table, case, cast, exists, func, literal, select, text

from rlvitals_monitor.store import audit as audit_table
from rlvitals_monitor.store.deletion import is_there
from rlvitals_monitor.store.horizon import PREFIX
from rlvitals_monitor.store.rollups import COARSE, FINE
from rlvitals_monitor.store.tables import (
    NumberKind,
    attempts,
    extremes,
    histograms,
    meta,
    points,
    rollups,
    runs,
    series,
    writers,
)

SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What was asked, and what is wrong; ``fault`` is empty where all is well."""

    question: str
    fault: str = ""


def check(connection: Connection) -> Iterator[Finding]:
    """One after the other, since some read the whole store."""
    for question, look in CHECKS:
        yield Finding(question=question, fault=look(connection))


def _is_whole(connection: Connection) -> str:
    if connection.dialect.name != "sqlite":
        # PostgreSQL has checksums of its own; to read a row is to check it
        return ""
    found = [str(row[0]) for row in connection.exec_driver_sql("PRAGMA integrity_check")]
    return "" if found == ["ok"] else "; ".join(found[:SHOWN])


def _references(connection: Connection) -> str:
    if connection.dialect.name != "sqlite":
        query = text("SELECT conrelid::regclass::text FROM pg_constraint WHERE contype = 'f' AND NOT convalidated")
        found = [str(row[0]) for row in connection.execute(query)]
        return f"not validated in {', '.join(found[:SHOWN])}" if found else ""
    broken = connection.exec_driver_sql("PRAGMA foreign_key_check").fetchall()
    return f"{len(broken)} rows refer to none, the first in {broken[0][0]}" if broken else ""


def _has_epoch(connection: Connection) -> str:
    known = connection.scalar(select(meta.c.value).where(meta.c.key == "epoch"))
    return "" if known else "it has none, and no client could be told of a restored backup"


def _has_series(connection: Connection) -> str:
    for table in (points, rollups, extremes, histograms):
        if orphans := _orphans(connection, table):
            return f"{orphans} of {table.name} belong to no metric of any run"
    return ""


def _orphans(connection: Connection, table: Table) -> int:
    numbers = select(table.c.series).distinct().subquery()
    unknown = ~exists().where(series.c.number == numbers.c.series)
    return connection.scalar(select(func.count()).select_from(numbers).where(unknown)) or 0


def _kinds(connection: Connection) -> str:
    strange = connection.scalar(
        select(func.count()).select_from(points).where(points.c.kind.not_in([int(kind) for kind in NumberKind]))
    )
    hidden = connection.scalar(
        select(func.count())
        .select_from(points)
        .where(points.c.kind != int(NumberKind.FINITE), points.c.value != 0)
    )
    return f"{strange} numbers of no known kind, {hidden} that are two things at once" if strange or hidden else ""


def _rollups_count(connection: Connection) -> str:
    """Where no raw point has come of age, both widths count exactly the points that there are."""
    thinned = select(meta.c.value).where(meta.c.key == literal(PREFIX) + cast(attempts.c.number, String))
    c = rollups.c
    every = c["count"] + c.nan + c.pos_inf + c.neg_inf
    widths = [func.sum(case((c.width == width, every), else_=0)) for width in (FINE, COARSE)]
    rolled = select(c.series, widths[0].label("fine"), widths[1].label("coarse")).group_by(c.series).subquery()
    counted = select(points.c.series, func.count().label("n")).group_by(points.c.series).subquery()
    query = (
        select(attempts.c.run, series.c.metric, counted.c.n, rolled.c.fine, rolled.c.coarse)
        .join(series, series.c.number == counted.c.series)
        .join(attempts, attempts.c.number == series.c.attempt)
        .join(runs, runs.c.id == attempts.c.run)
        .outerjoin(rolled, rolled.c.series == counted.c.series)
        .where(is_there(), ~thinned.exists())
        .where(
            (func.coalesce(rolled.c.fine, -1) != counted.c.n) | (func.coalesce(rolled.c.coarse, -1) != counted.c.n)
        )
    )
    found = connection.execute(query.limit(SHOWN)).all()
    return "; ".join(
        f"run {row.run}, {row.metric}: {row.n} points, and its charts know of {row.fine} and {row.coarse}"
        for row in found
    )


def _extremes_survive(connection: Connection) -> str:
    """Of each metric, the greatest and least finite point lie within what its charts know."""
    c = rollups.c
    known = select(c.series, func.min(c.low).label("low"), func.max(c.high).label("high"))
    rolled = known.where(c.width == COARSE).group_by(c.series).subquery()
    p = points.c
    seen = select(p.series, func.min(p.value).label("low"), func.max(p.value).label("high"))
    finite = seen.where(p.kind == int(NumberKind.FINITE)).group_by(p.series).subquery()
    query = (
        select(func.count())
        .select_from(finite)
        .outerjoin(rolled, rolled.c.series == finite.c.series)
        .where(rolled.c.low.is_(None) | (rolled.c.low > finite.c.low) | (rolled.c.high < finite.c.high))
    )
    lost = connection.scalar(query)
    return f"the charts of {lost} metrics have lost a spike" if lost else ""


def _writers(connection: Connection) -> str:
    ahead = connection.execute(
        select(attempts.c.run)
        .join(writers, writers.c.attempt == attempts.c.number)
        .where(writers.c.stored_through < -1)
        .limit(1)
    ).first()
    return f"run {ahead.run} is acknowledged up to nowhere" if ahead else ""


def _chain(connection: Connection) -> str:
    found = audit_table.verify(connection)
    return f"line {found.number}: {found.fault}" if found.fault else ""


CHECKS: tuple[tuple[str, Callable[[Connection], str]], ...] = (
    ("the file is whole, page by page", _is_whole),
    ("every row that another refers to is there", _references),
    ("the store has an epoch", _has_epoch),
    ("every number belongs to a metric of a run", _has_series),
    ("every number is finite, NaN, +Inf or -Inf, and one of them", _kinds),
    ("the charts count every point once", _rollups_count),
    ("no chart has lost a spike", _extremes_survive),
    ("every writer is acknowledged up to somewhere", _writers),
    ("nobody has changed the audit", _chain),
)
