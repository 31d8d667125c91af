"""Commands between the service and the trainer: handed out on a receipt, answered, or expired.

Every function takes the caller's transaction and writes an audit line for each change.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from sqlalchemy import Connection

from rlvitals.contract.command import Command, CommandKind, CommandState, Outcome
from rlvitals.contract.view import CommandView
from rlvitals_monitor.control.ledger import audit, command_of, locked_subject
from rlvitals_monitor.control.situation import OPEN
from rlvitals_monitor.store import commands as store
from rlvitals_monitor.store.audit import DETAIL_LIMIT
from rlvitals_monitor.store.knobs import read_knobs
from rlvitals_monitor.store.words import storable

SERVICE, TRAINER = "service", "trainer"
SILENT_AFTER = timedelta(seconds=30)
"""An attempt that says nothing for so long is taken for dead, and a newer one is given its commands. Both have the
same journals where a trainer was started again, so that none is applied twice."""
RUN_ENDED = "the run ended before it was applied"
_ENDS = frozenset({CommandState.APPLIED, CommandState.REFUSED, CommandState.EXPIRED})


def pending_for(conn: Connection, run: str, now: datetime, attempt: str = "") -> tuple[Command, ...]:
    """What rides on the next receipt: the same commands again until an outcome or their expiry ends them.

    A receipt may get lost and the trainer knows by id what it has seen; the first hand-out is recorded, once. What
    another attempt was given stays that one's while it is heard of: two trainers may call themselves the same run.
    Needs a write transaction.
    """
    waiting = store.waiting(conn, run, now)
    found = _known_to(conn, run, tuple(view for view in waiting if _may_have(conn, view, attempt, now)))
    for view in found:
        if view.state is CommandState.PENDING or view.handed_to != attempt:
            delivered = replace(view, state=CommandState.DELIVERED, handed_to=attempt)
            if store.change(conn, delivered, before=[view.state]):
                audit(conn, view, who=SERVICE, what="delivered", detail="", now=now)
    return tuple(command_of(view, now) for view in found)


def record_outcome(conn: Connection, run: str, outcome: Outcome, now: datetime) -> bool:
    """What the trainer says became of a command. False, and no change, for news that is old or not its own."""
    view = store.find(conn, outcome.command_id)
    if view is None or view.run != run or outcome.state not in _ENDS or outcome.state is view.state:
        return False
    ended = replace(
        view,
        state=outcome.state,
        reason=storable(outcome.reason, DETAIL_LIMIT) or (view.reason if view.state in OPEN else ""),
        before=outcome.before,
        after=outcome.after,
        step=outcome.step,
        done_at=now,
    )
    if not store.change(conn, ended, before=_answerable(view)):
        return False
    audit(conn, ended, who=TRAINER, what=ended.state.value, detail=_answered(outcome), now=now)
    return True


def expire(conn: Connection, run: str, now: datetime) -> int:
    """Ends what nobody decided or fetched in time, and what came too late for the run; how many those are.

    One run in one transaction, as everywhere here: the audit's lock comes after a run's, never before it.
    """
    over = locked_subject(conn, run).phase in store.ENDED
    done = 0
    for view in store.overdue(conn, run, now):
        late = view.expires_at <= now
        state = CommandState.EXPIRED if late or not over else CommandState.REFUSED
        reason = f"nobody acted on it while it was {view.state.value}" if late or not over else RUN_ENDED
        ended = replace(view, state=state, reason=reason, done_at=now)
        if store.change(conn, ended, before=[view.state]):
            audit(conn, ended, who=SERVICE, what=state.value, detail=reason, now=now)
            done += 1
    return done


def _may_have(conn: Connection, view: CommandView, attempt: str, now: datetime) -> bool:
    if view.handed_to in ("", attempt) or not attempt:
        return True
    heard = store.heard_of(conn, view.run, view.handed_to)
    return heard is None or now - heard > SILENT_AFTER


def _known_to(conn: Connection, run: str, found: tuple[CommandView, ...]) -> tuple[CommandView, ...]:
    """Without knobs that the present attempt does not have: an older client could not even read them."""
    if all(view.kind is not CommandKind.SET_KNOB for view in found):
        return found
    knobs = read_knobs(conn, run)
    return tuple(view for view in found if view.kind is not CommandKind.SET_KNOB or view.knob in knobs)


def _answerable(view: CommandView) -> tuple[CommandState, ...]:
    """What the trainer did before it heard that the service had given the command up is true all the same."""
    given_up = view.state is CommandState.REFUSED and view.reason == RUN_ENDED
    answerable = (CommandState.PENDING, CommandState.DELIVERED, CommandState.EXPIRED)
    return (*answerable, CommandState.REFUSED) if given_up else answerable


def _answered(outcome: Outcome) -> str:
    change = f"{_number(outcome.before)} → {_number(outcome.after)}"
    at = "" if outcome.step is None else f"step {outcome.step}, "
    return f"{at}{change}" + (f": {outcome.reason}" if outcome.reason else "")


def _number(value: float | None) -> str:
    return "missing" if value is None else f"{value:g}"
