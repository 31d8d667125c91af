"""Removes data piece by piece: of deleted runs all but their row and the audit, of old steps what has come of age.

Each call is one short transaction of at most so many rows, that reports do not wait for. To remove what is gone
already changes nothing, so several processes may do it at once, or die in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Table, and_, delete, exists, func, or_, select, update

from rlvitals_monitor.store import horizon
from rlvitals_monitor.store.numbers import to_micros
from rlvitals_monitor.store.outbox import DeliveryState
from rlvitals_monitor.store.tables import (
    alerts,
    attempts,
    commands,
    deliveries,
    evaluations,
    events,
    extremes,
    histograms,
    hook_tables,
    messages,
    points,
    policies,
    rollups,
    runs,
    sends,
    series,
    shares,
    steering,
    steering_memory,
    steps,
    texts,
    transitions,
    voices,
    writers,
)

_OF_RUN = (attempts, alerts, commands, shares)
_WAITING = DeliveryState.WAITING.value


def pending(connection: Connection, limit: int) -> list[str]:
    """Deleted runs of which something is left, the longest deleted first."""
    left = or_(*(exists().where(table.c.run == runs.c.id) for table in _OF_RUN))
    query = select(runs.c.id).where(runs.c.deleted_at.is_not(None), left)
    return list(connection.scalars(query.order_by(runs.c.deleted_at, runs.c.id).limit(limit)))


def remove_run(connection: Connection, run: str, rows: int, now: datetime) -> int:
    """Removes about ``rows`` rows of a deleted run; how many it was. 0 also where the rest waits for a message
    that is being sent just now.
    """
    _give_up_messages(connection, run, now)
    done = 0
    for remove in _parts(connection, run, rows):
        done += remove(rows - done)
        if done >= rows:
            break
    return done


def remove_points(connection: Connection, attempt_number: int, through: int, rows: int) -> int:
    """Raw points of the steps up to ``through``, but each metric's last one, with what their extremes were."""
    horizon.move(connection, attempt_number, through + 1)
    done = 0
    for number in _series_of(connection, attempt_number):
        for table in (points, extremes):
            last = connection.scalar(select(func.max(table.c.step)).where(table.c.series == number))
            if last is not None and done < rows:
                end = min(through + 1, last)
                done += _remove_steps(connection, table, table.c.series == number, rows - done, end)
    return done


def remove_histograms(connection: Connection, attempt_number: int, through: int, rows: int) -> int:
    done = 0
    for number in _series_of(connection, attempt_number):
        if done < rows:
            mine = histograms.c.series == number
            done += _remove_steps(connection, histograms, mine, rows - done, through + 1)
    return done


def remove_texts(connection: Connection, attempt_number: int, through: int, rows: int) -> int:
    mine = and_(texts.c.attempt == attempt_number, texts.c.step <= through)
    return _remove(connection, texts, texts.c.number, mine, rows)


def _parts(connection: Connection, run: str, rows: int) -> Iterator[Callable[[int], int]]:
    """What removes, in an order that breaks no reference."""
    transition_ids = select(transitions.c.id).where(transitions.c.run == run)
    on_its_way = exists().where(messages.c.id == deliveries.c.message, messages.c.state == _WAITING)
    told = and_(deliveries.c.transition.in_(transition_ids), ~on_its_way)
    yield lambda left: _remove(connection, deliveries, deliveries.c.id, told, left)
    unused = and_(messages.c.run == run, ~exists().where(deliveries.c.message == messages.c.id))
    message_ids = select(messages.c.id).where(unused)
    yield lambda left: _rowcount(connection, delete(sends).where(sends.c.message.in_(message_ids)))
    yield lambda left: _remove(connection, messages, messages.c.id, unused, left)
    untold = and_(transitions.c.run == run, ~exists().where(deliveries.c.transition == transitions.c.id))
    yield lambda left: _remove(connection, transitions, transitions.c.id, untold, left)
    settled = and_(alerts.c.run == run, ~exists().where(transitions.c.alert == alerts.c.id))
    yield lambda left: _remove(connection, alerts, alerts.c.id, settled, left)
    command_ids = select(commands.c.id).where(commands.c.run == run)
    yield lambda left: _rowcount(connection, delete(voices).where(voices.c.command.in_(command_ids)))
    yield lambda left: _remove(connection, commands, commands.c.id, commands.c.run == run, left)
    yield lambda left: _rowcount(connection, delete(shares).where(shares.c.run == run))
    for chosen in (policies, steering):
        mine = and_(chosen.c.scope == "run", chosen.c.name == run)
        yield lambda left, chosen=chosen, mine=mine: _rowcount(  # type: ignore[misc]
            connection, delete(chosen).where(mine)
        )
    for number in connection.scalars(select(attempts.c.number).where(attempts.c.run == run)).all():
        yield from _attempt_parts(connection, number)


def _attempt_parts(connection: Connection, number: int) -> Iterator[Callable[[int], int]]:
    for one in _series_of(connection, number):
        for table in (points, extremes, histograms):
            yield _steps_of(connection, table, table.c.series == one)
        yield lambda left, one=one: _rowcount(  # type: ignore[misc]
            connection, delete(rollups).where(rollups.c.series == one)
        )
        yield lambda left, one=one: _rowcount(  # type: ignore[misc]
            connection, delete(series).where(series.c.number == one)
        )
    for table in (texts, events):
        yield lambda left, table=table: _remove(  # type: ignore[misc]
            connection, table, table.c.number, table.c.attempt == number, left
        )
    yield _steps_of(connection, steps, steps.c.attempt == number)
    for table in (writers, hook_tables, evaluations, steering_memory):
        yield lambda left, table=table: _rowcount(  # type: ignore[misc]
            connection, delete(table).where(table.c.attempt == number)
        )
    yield lambda left: _remove_attempt(connection, number)


def _remove_attempt(connection: Connection, number: int) -> int:
    """Its alerts may still wait for a message, and go first."""
    horizon.forget(connection, number)
    free = and_(attempts.c.number == number, ~exists().where(alerts.c.attempt == number))
    return _rowcount(connection, delete(attempts).where(free))


def _give_up_messages(connection: Connection, run: str, now: datetime) -> None:
    """Those about this run alone that nobody is sending just now."""
    free = or_(messages.c.claimed_by.is_(None), messages.c.claimed_until <= to_micros(now))
    mine = and_(messages.c.run == run, messages.c.state == _WAITING, free)
    dropped = DeliveryState.DROPPED.value
    connection.execute(update(messages).where(mine).values(state=dropped, answer="the run was deleted"))


def _series_of(connection: Connection, attempt_number: int) -> list[int]:
    mine = select(series.c.number).where(series.c.attempt == attempt_number)
    return list(connection.scalars(mine.order_by(series.c.number)))


def _steps_of(connection: Connection, table: Table, mine: ColumnElement[bool]) -> Callable[[int], int]:
    return lambda left: _remove_steps(connection, table, mine, left, None)


def _remove_steps(
    connection: Connection, table: Table, mine: ColumnElement[bool], rows: int, end: int | None
) -> int:
    """The first ``rows`` steps of a table that is clustered by step, below ``end``."""
    if rows <= 0:
        return 0
    bound = connection.scalar(select(table.c.step).where(mine).order_by(table.c.step).offset(rows).limit(1))
    limits = [limit for limit in (bound, end) if limit is not None]
    query = delete(table).where(mine)
    return _rowcount(connection, query.where(table.c.step < min(limits)) if limits else query)


def _remove(
    connection: Connection, table: Table, key: ColumnElement[Any], mine: ColumnElement[bool], rows: int
) -> int:
    if rows <= 0:
        return 0
    some = select(key).where(mine).limit(rows)
    return _rowcount(connection, delete(table).where(key.in_(some)))


def _rowcount(connection: Connection, statement: Any) -> int:
    return max(0, connection.execute(statement).rowcount)
