"""The newest hook table of each writer: kept as events arrive, read for an attempt or for a page of runs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from sqlalchemy import Connection, select

from rlvitals.contract import codec
from rlvitals.contract.hooks import HookTableView, read_table
from rlvitals.contract.report import Event, EventKind
from rlvitals_monitor.store.admission import Place
from rlvitals_monitor.store.bulk import Upsert
from rlvitals_monitor.store.numbers import from_micros, to_micros
from rlvitals_monitor.store.tables import attempts, hook_tables
from rlvitals_monitor.store.texts import event_row

WRITERS_SHOWN_MAX = 256
_KEEP = Upsert(hook_tables)


def keep_table(connection: Connection, place: Place, events: Sequence[Event], now: datetime) -> None:
    """Keeps the last table among a writer's new events, which come in the order of their seq."""
    told = [event for event in events if event.kind is EventKind.HOOK]
    if not told:
        return
    try:
        kept = event_row(place.attempt_number, told[-1])
    except ValueError:  # refused among the events already
        return
    payload = codec.dumps(kept["payload"]).decode("ascii")
    _KEEP.write(connection, [(place.attempt_number, place.writer, to_micros(now), kept["step"], payload)])


def read_tables(connection: Connection, numbers: Iterable[int]) -> Mapping[int, Sequence[HookTableView]]:
    """Attempt number → its writers' newest tables, by name, at most `WRITERS_SHOWN_MAX` of each attempt."""
    query = (
        select(hook_tables, attempts.c.id.label("attempt_id"))
        .join(attempts, attempts.c.number == hook_tables.c.attempt)
        .where(hook_tables.c.attempt.in_(list(numbers)))
        .order_by(hook_tables.c.attempt, hook_tables.c.writer)
    )
    found: dict[int, list[HookTableView]] = defaultdict(list)
    for row in connection.execute(query):
        if len(found[row.attempt]) < WRITERS_SHOWN_MAX:
            found[row.attempt].append(
                read_table(
                    row.payload,
                    attempt=row.attempt_id,
                    writer=row.writer,
                    at=from_micros(row.at),
                    step=row.step,
                )
            )
    return found
