"""Deleting a run: it is marked, which everybody sees at once, and `purge` removes what it left, piece by piece.

The run's row stays, so that a trainer that still sends is told, and nobody takes a later run for this one.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ColumnElement, Connection, select, update

from rlvitals.contract.view import RunDeletion
from rlvitals_monitor.errors import Gone
from rlvitals_monitor.store.numbers import from_micros, to_micros
from rlvitals_monitor.store.outbox import OPEN, DeliveryState
from rlvitals_monitor.store.tables import deliveries, runs, shares, transitions
from rlvitals_monitor.store.words import storable

WHO_LIMIT = 128
BARE = {"config": {}, "tags": [], "capabilities": {}, "knobs": {}, "labels": [], "notes": "", "owner": ""}
"""What a deleted run's row no longer says."""


def is_there() -> ColumnElement[bool]:
    """A condition on ``runs``."""
    return runs.c.deleted_at.is_(None)


def of_a_deleted(column: ColumnElement[str]) -> ColumnElement[bool]:
    """A condition on a column of run ids in another table."""
    return column.in_(select(runs.c.id).where(runs.c.deleted_at.is_not(None)))


def mark(connection: Connection, run: str, who: str, now: datetime) -> RunDeletion | None:
    """Deletes a run, as everybody sees it, and has nobody told of it any more. None where it is not there, or
    where somebody has deleted it before.
    """
    said = storable(who, WHO_LIMIT)
    there = (runs.c.id == run) & is_there()
    at = to_micros(now)
    done = connection.execute(update(runs).where(there).values(deleted_at=at, deleted_by=said, **BARE))
    if done.rowcount != 1:
        return None
    _hush(connection, run)
    connection.execute(
        update(shares).where(shares.c.run == run, shares.c.revoked_at.is_(None)).values(revoked_at=at)
    )
    return RunDeletion(run=run, deleted_at=from_micros(at), deleted_by=said)


def find(connection: Connection, run: str) -> RunDeletion | None:
    """Who deleted the run, and when; None where it is there, or never was."""
    row = connection.execute(
        select(runs.c.deleted_at, runs.c.deleted_by).where(runs.c.id == run, runs.c.deleted_at.is_not(None))
    ).one_or_none()
    if row is None:
        return None
    return RunDeletion(run=run, deleted_at=from_micros(row.deleted_at), deleted_by=row.deleted_by)


def refuse_deleted(connection: Connection, run: str) -> None:
    """Raises `Gone` for a run that was deleted."""
    found = find(connection, run)
    if found is not None:
        raise gone(found)


def gone(found: RunDeletion) -> Gone:
    """To be raised."""
    at = found.deleted_at.strftime("%Y-%m-%d %H:%M UTC")
    return Gone(f"run {found.run!r} was deleted by {found.deleted_by} at {at}")


def _hush(connection: Connection, run: str) -> None:
    """What was to be said of it is not said."""
    of_it = select(transitions.c.id).where(transitions.c.run == run)
    connection.execute(update(transitions).where(transitions.c.run == run).values(routed=True))
    connection.execute(
        update(deliveries)
        .where(deliveries.c.transition.in_(of_it), deliveries.c.state.in_(OPEN), deliveries.c.message.is_(None))
        .values(state=DeliveryState.DROPPED.value, answer="the run was deleted")
    )
