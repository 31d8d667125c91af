"""What is kept how long, as people chose it: a line for a project, and one ("") for all others."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, delete, select
from sqlalchemy.dialects import postgresql, sqlite

from rlvitals.contract.view import RetentionView
from rlvitals_monitor.store.deletion import is_there
from rlvitals_monitor.store.numbers import from_micros, to_micros
from rlvitals_monitor.store.tables import retention, runs
from rlvitals_monitor.store.words import storable

WHO_LIMIT = 128
EVERYBODY = ""
KINDS = ("points_days", "texts_days", "histograms_days", "runs_days")


def read_all(connection: Connection) -> tuple[RetentionView, ...]:
    """For all first, then every project: those without a line of their own are ``inherited``."""
    chosen = {row.project: _view(row) for row in connection.execute(select(retention))}
    common = chosen.pop(EVERYBODY, RetentionView(project=EVERYBODY))
    known = connection.scalars(select(runs.c.project).where(is_there()).distinct())
    inherited = {project: _inherit(common, project) for project in known}
    return (common, *(view for _, view in sorted({**inherited, **chosen}.items())))


def read(connection: Connection, project: str) -> RetentionView:
    """What holds for a project."""
    rows = connection.execute(select(retention).where(retention.c.project.in_([project, EVERYBODY])))
    chosen = {row.project: _view(row) for row in rows}
    common = chosen.get(EVERYBODY, RetentionView(project=EVERYBODY))
    return chosen.get(project) or _inherit(common, project)


def choose(
    connection: Connection, project: str, days: Mapping[str, float | None], who: str, now: datetime
) -> RetentionView:
    """From now on; ``days`` by the names of `KINDS`."""
    build = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    body = {name: days.get(name) for name in KINDS if days.get(name) is not None}
    row = {"project": project, "body": body, "changed_at": to_micros(now), "changed_by": storable(who, WHO_LIMIT)}
    statement = build(retention).values(row)
    changed = {name: statement.excluded[name] for name in row if name != "project"}
    connection.execute(statement.on_conflict_do_update(index_elements=["project"], set_=changed))
    return read(connection, project)


def take_back(connection: Connection, project: str) -> bool:
    """What holds for all holds again; False where there is no line of its own."""
    return connection.execute(delete(retention).where(retention.c.project == project)).rowcount == 1


def _view(row: Row[Any]) -> RetentionView:
    days = {name: row.body.get(name) for name in KINDS}
    return RetentionView(
        project=row.project, **days, changed_at=from_micros(row.changed_at), changed_by=row.changed_by
    )


def _inherit(common: RetentionView, project: str) -> RetentionView:
    days = {name: getattr(common, name) for name in KINDS}
    return RetentionView(
        project=project, **days, inherited=True, changed_at=common.changed_at, changed_by=common.changed_by
    )
