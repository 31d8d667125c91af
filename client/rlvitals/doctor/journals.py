"""The hook tables that a run told, read from its journals: those of a running or finished run on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from rlvitals.contract.hooks import HookState, HookTableView, read_table
from rlvitals.contract.report import Event, EventKind, StepReport
from rlvitals.doctor.finding import Finding, State
from rlvitals.doctor.trainers import row_of
from rlvitals.follow import Follower
from rlvitals.spool import Lock, journals, read_acked, run_folder, segments

SECTION = "run"
BLIND_STEPS = 3
_BAD = frozenset({HookState.BLIND, HookState.FAILING})


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What one journal says: how many steps it still keeps, the newest table if it told one, the last event."""

    folder: Path
    writer: str
    steps: int
    last_step: int | None
    table: HookTableView | None
    living: bool


def examine_run(spool: Path, run: str) -> Iterator[Finding]:
    """``run`` is a run's id, or the folder of a run or of one journal. Newest journal first."""
    folders = journal_folders(spool, run)
    if not folders:
        known = sorted({folder.parent.name for folder in journals(spool)})[-5:]
        hint = f"newest there: {', '.join(known)}" if known else "the spool is empty"
        yield Finding(section=SECTION, state=State.WRONG, told=f"no journal of {run!r} in {spool}", fix=hint)
    for folder in folders:
        yield judge(read_journal(folder))


def journal_folders(spool: Path, run: str) -> list[Path]:
    base, named = run_folder(spool, run), Path(run)
    if not base.is_dir() and named.is_dir():
        if segments(named):
            return [named]
        base = named
    return [folder for folder in reversed(list(journals(base.parent))) if folder.parent == base]


def read_journal(folder: Path) -> Told:
    """Reads the whole of it, as far as it is kept: acknowledged segments may be gone."""
    follower = Follower(folder)
    table, steps, last = None, 0, None
    while items := follower.read(1000):
        for item in items:
            record = item.record
            if isinstance(record, StepReport):
                steps, last = steps + 1, record.step
            elif isinstance(record, Event) and record.kind is EventKind.HOOK:
                at = datetime.fromtimestamp(record.time_s, timezone.utc)
                attempt, writer = follower.assembler.attempt, follower.assembler.writer
                table = read_table(record.payload, attempt=attempt, writer=writer, at=at, step=record.step)
    follower.close()
    return Told(
        folder=folder,
        writer=follower.assembler.writer,
        steps=steps,
        last_step=last,
        table=table,
        living=_is_living(folder),
    )


def judge(told: Told) -> Finding:
    """A blind or failing hook is wrong, so is a run that nothing has seen; one without a table is told. Pure."""
    name = f"{told.folder.parent.name}/{told.folder.name}"
    life = "being written" if told.living else "ended"
    reached = "no step" if told.last_step is None else f"step {told.last_step}"
    head = f"{name} ({life}, {reached})"
    table = told.table
    if table is None:
        return Finding(section=SECTION, state=State.NOTE, told=f"{head}: tells of no hooks")
    expected = [h for h in table.hooks if not h.optional or h.sees]
    seeing = sum(h.sees for h in expected)
    bad = [h for h in expected if h.state in _BAD]
    unseen = not seeing and bool(expected) and (told.steps >= BLIND_STEPS or not told.living)
    state = State.WRONG if bad or unseen else State.OK
    fix = "see the reason beside the hook; `rlvitals doctor` without a run says what this environment has"
    return Finding(
        section=SECTION,
        state=state,
        told=f"{head}: {seeing} of {len(expected)} hooks of {table.trainer} see",
        fix=fix if state is State.WRONG else "",
        rows=tuple(row_of(hook) for hook in table.hooks),
        table=table,
    )


def _is_living(folder: Path) -> bool:
    if read_acked(folder).complete:
        return False
    try:
        lock = Lock.take(folder)
    except OSError:
        return False
    if lock is None:
        return True
    lock.release()
    return False
