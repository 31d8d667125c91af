"""Whether the service sees and tells: its database answers, its worker works, its dispatcher delivers.

Facts are read by `read_facts` and judged by `judge`, which is pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sqlalchemy.exc import SQLAlchemyError

from rlvitals.contract.health import PartHealth
from rlvitals_monitor.notify.dispatcher import Dispatcher
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.worker import Worker

STANDS_STILL_AFTER = timedelta(minutes=2)
"""A long backlog is judged in pieces of at most some seconds; whoever shows no sign for so long hangs."""
AILS_AFTER = timedelta(minutes=1)
"""A piece of work that failed once is tried again each second."""

LEAST_FREE = 256 << 20
"""Bytes on the disk of an SQLite file; a backlog that arrives at once may take as much."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beats:
    """A loop's last sign of life, and what of its work has failed since when, without a success between."""

    at: datetime
    failing: Mapping[str, datetime] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """``database`` says what is wrong with it, "" for nothing; a loop that this process does not run is None."""

    database: str
    worker: Beats | None = None
    dispatcher: Beats | None = None


def judge(facts: Facts, now: datetime) -> tuple[PartHealth, ...]:
    parts = [PartHealth(name="database", well=not facts.database, words=facts.database)]
    for name, beats in (("worker", facts.worker), ("dispatcher", facts.dispatcher)):
        if beats is not None:
            words = _words(beats, now)
            parts.append(PartHealth(name=name, well=not words, words=words))
    return tuple(parts)


def read_facts(store: Store, worker: Worker | None, dispatcher: Dispatcher | None) -> Facts:
    return Facts(
        database=_database(store),
        worker=None if worker is None else Beats(at=worker.beat_at, failing=dict(worker.failing)),
        dispatcher=None if dispatcher is None else Beats(at=dispatcher.beat_at, failing=dict(dispatcher.failing)),
    )


def _words(beats: Beats, now: datetime) -> str:
    if now - beats.at > STANDS_STILL_AFTER:
        return f"no sign of life for {(now - beats.at).total_seconds():.0f} s"
    return "; ".join(
        f"{what} has failed for {(now - since).total_seconds():.0f} s"
        for what, since in sorted(beats.failing.items())
        if now - since > AILS_AFTER
    )


def _database(store: Store) -> str:
    try:
        if not store.is_current():
            return "the schema is not this code's: run `rlvitals db migrate`"
        free = store.free_bytes()
    except (SQLAlchemyError, OSError) as error:
        return f"the database does not answer: {type(error).__name__}"
    return room_words(store.write_fault, free)


def room_words(write_fault: str, free_bytes: int | None) -> str:
    """What is wrong with a database that can be read; "" for nothing."""
    if write_fault:
        return f"it can be read; the last write failed: {write_fault.splitlines()[0][:200]}"
    if free_bytes is not None and free_bytes < LEAST_FREE:
        return f"only {free_bytes >> 20} MiB are free on its disk: make room before nothing more can be stored"
    return ""
