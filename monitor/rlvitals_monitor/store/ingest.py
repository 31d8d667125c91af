"""Stores one batch in one transaction: exactly once by (run, attempt, writer, seq), partly where it must be.

Values of one step that several writers report are merged by `Metric.merge` (sum, min, max; else the last writer
wins: ratios that need merged Tallies are so far finished by one writer). One writer that reports a step twice
corrects itself: the later value stands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any, Protocol, TypeVar

from sqlalchemy import Connection, case, select, update

from rlvitals.contract.command import Outcome
from rlvitals.contract.evaluation import is_evaluation
from rlvitals.contract.report import Event, EventKind, Phase, Refusal, ReportBatch
from rlvitals_monitor.store import hooks, points, texts
from rlvitals_monitor.store.admission import Place, admit
from rlvitals_monitor.store.numbers import to_micros
from rlvitals_monitor.store.tables import attempts, runs, writers


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """What became of a batch.

    ``stored`` and ``duplicates`` count records of every type; ``outcomes`` are those not seen before;
    ``progressed`` says that there are steps to evaluate; ``phase`` is the run's after this batch; ``newest`` says
    whether no newer attempt of the run has begun.
    """

    run: str
    attempt_number: int
    stored_through: int
    stored: int
    duplicates: int
    refused: tuple[Refusal, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    progressed: bool = False
    phase: str = ""
    newest: bool = True


class _Numbered(Protocol):
    @property
    def seq(self) -> int: ...


R = TypeVar("R", bound=_Numbered)


class _Sieve:
    """Parts what is new from what was stored before, and remembers how far the new goes."""

    def __init__(self, stored_through: int, lines: Mapping[int, int]) -> None:
        self.stored_through = self.through = stored_through
        self.duplicates = 0
        self._lines = lines

    def fresh(self, records: Sequence[R]) -> list[tuple[int, R]]:
        """(line, record) of those not stored before, in the order of their seq."""
        kept: dict[int, tuple[int, R]] = {}
        for place, record in enumerate(records, start=1):
            if record.seq <= self.stored_through or record.seq in kept:
                self.duplicates += 1
            else:
                kept[record.seq] = (self._lines.get(record.seq, place), record)
                self.through = max(self.through, record.seq)
        return [kept[seq] for seq in sorted(kept)]


def store_batch(
    connection: Connection,
    batch: ReportBatch,
    now: datetime,
    *,
    through: int = -1,
    lines: Mapping[int, int] = MappingProxyType({}),
) -> Stored:
    """Stores what is new in ``batch``; raises `DecodeError` only where it cannot be filed at all.

    ``through``: the highest seq of records that could not even be read; they are passed over for good, since a
    resend would not mend them. ``lines``: seq → line in the sent document, for refusals; by default the place
    in the batch's own tuple.
    """
    place = admit(connection, batch, now)
    sieve = _Sieve(place.stored_through, lines)
    refused = list(place.refused)
    steps = points.plausible(sieve.fresh(batch.steps), refused)
    events = sieve.fresh(batch.events)
    outcomes = tuple(outcome for _, outcome in sieve.fresh(batch.outcomes))
    stored = (
        points.store_steps(connection, place, steps, now, refused)
        + points.store_histograms(connection, place, sieve.fresh(batch.histograms), refused)
        + texts.store_texts(connection, place, sieve.fresh(batch.texts), refused)
        + texts.store_events(connection, place, events, refused)
        + len(outcomes)
    )
    hooks.keep_table(connection, place, [event for _, event in events], now)
    reached = [report.step for _, report in steps if not is_evaluation(report.values)]
    covered = max(sieve.through, through)
    _advance_writer(connection, place, covered, _reach(batch, reached), now)
    _advance_attempt(connection, place, reached)
    return Stored(
        run=place.run,
        attempt_number=place.attempt_number,
        stored_through=covered,
        stored=stored,
        duplicates=sieve.duplicates,
        refused=tuple(refused),
        outcomes=outcomes,
        progressed=bool(reached),
        newest=place.newest,
        phase=_advance_run(connection, place, batch, reached, [event for _, event in events], now),
    )


def stored_through(connection: Connection, batch: ReportBatch) -> int:
    """What the store has of the batch's writer, without storing anything; -1 for nothing."""
    query = (
        select(writers.c.stored_through)
        .join(attempts, attempts.c.number == writers.c.attempt)
        .where(attempts.c.run == batch.run.id, attempts.c.id == batch.attempt, writers.c.name == batch.writer)
    )
    known = connection.scalar(query)
    return -1 if known is None else known


def _reach(batch: ReportBatch, reached: Sequence[int]) -> int | None:
    """The step that the writer says it has come to."""
    told = None if batch.heartbeat is None else batch.heartbeat.last_step
    known = [*reached, *(() if told is None or abs(told) > points.STEP_MAX else (told,))]
    return max(known, default=None)


def _advance_writer(connection: Connection, place: Place, covered: int, step: int | None, now: datetime) -> None:
    at = to_micros(now)
    changes: dict[str, Any] = {"stored_through": covered, "seen_at": at}
    if step is not None:
        grown = writers.c.last_step.is_(None) | (writers.c.last_step < step)
        changes["last_step"] = case((grown, step), else_=writers.c.last_step)
        changes["progress_at"] = case((grown, at), else_=writers.c.progress_at)
    mine = (writers.c.attempt == place.attempt_number) & (writers.c.name == place.writer)
    connection.execute(update(writers).where(mine).values(**changes))


def _advance_attempt(connection: Connection, place: Place, reached: Sequence[int]) -> None:
    if not reached:
        return
    first, last = attempts.c.first_step, attempts.c.last_step
    low, high = min(reached), max(reached)
    connection.execute(
        update(attempts)
        .where(attempts.c.number == place.attempt_number)
        .values(
            first_step=case((first.is_(None) | (first > low), low), else_=first),
            last_step=case((last.is_(None) | (last < high), high), else_=last),
        )
    )


def _advance_run(
    connection: Connection,
    place: Place,
    batch: ReportBatch,
    reached: Sequence[int],
    events: Sequence[Event],
    now: datetime,
) -> str:
    """Moves the run's clocks and phase by its newest attempt; returns the phase."""
    before = connection.execute(runs.select().where(runs.c.id == place.run)).one()
    if not place.newest:
        return str(before.phase)
    phase = _phase(batch, events, before.phase, moved=bool(reached))
    changes: dict[str, Any] = {} if phase == before.phase else {"phase": phase}
    last_step = max([*reached, *([] if place.last_step is None else [place.last_step])], default=None)
    if reached:
        changes["progress_at"] = to_micros(now)
    if last_step != before.last_step:
        changes["last_step"] = last_step
    if changes:
        connection.execute(update(runs).where(runs.c.id == place.run).values(**changes))
    return phase


def _phase(batch: ReportBatch, events: Sequence[Event], before: str, *, moved: bool) -> str:
    if batch.heartbeat is not None:
        return batch.heartbeat.phase.value
    known = {phase.value for phase in Phase}
    told = [str(e.payload.get("phase")) for e in events if e.kind is EventKind.PHASE]
    told = [phase for phase in told if phase in known]
    if told:
        return told[-1]
    # Steps say that the loop runs, also where a hand-written client never sends a heartbeat.
    return Phase.UPDATE.value if moved and before in _NOT_TRAINING else before


_NOT_TRAINING = frozenset({Phase.STARTING.value, Phase.FINISHED.value, Phase.FAILED.value})
