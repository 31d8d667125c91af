"""From which step on an attempt's raw points are still kept: those before went with their age, their rollups stay.

A step before it that a writer reports now cannot be told from one that was counted long ago, so it is refused.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, func, select
from sqlalchemy.dialects import postgresql, sqlite

from rlvitals_monitor.store.numbers import to_micros
from rlvitals_monitor.store.tables import evaluations, meta, steps

PREFIX = "points_from:"


def read(connection: Connection, attempt_number: int) -> int | None:
    """The first step of which raw points are kept; None where none has been removed."""
    known = connection.scalar(select(meta.c.value).where(meta.c.key == _key(attempt_number)))
    return None if known is None else int(known)


def move(connection: Connection, attempt_number: int, first_kept: int) -> None:
    """Never back."""
    before = read(connection, attempt_number)
    if before is not None and before >= first_kept:
        return
    build = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    statement = build(meta).values(key=_key(attempt_number), value=str(first_kept))
    changed = {"value": statement.excluded.value}
    connection.execute(statement.on_conflict_do_update(index_elements=["key"], set_=changed))


def forget(connection: Connection, attempt_number: int) -> None:
    connection.execute(meta.delete().where(meta.c.key == _key(attempt_number)))


def last_step_before(connection: Connection, attempt_number: int, at: datetime) -> int | None:
    """The last step that came before ``at`` by the service's clock and was judged; None where there is none."""
    judged = select(evaluations.c.step).where(evaluations.c.attempt == attempt_number).scalar_subquery()
    query = select(func.max(steps.c.step)).where(
        steps.c.attempt == attempt_number, steps.c.received < to_micros(at), steps.c.step <= judged
    )
    found: int | None = connection.scalar(query)
    return found


def _key(attempt_number: int) -> str:
    return f"{PREFIX}{attempt_number}"
