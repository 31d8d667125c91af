"""Commands between the service and the trainer: handed out on a receipt, answered, or expired.

Every function takes the caller's transaction and writes an audit line for each change.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime

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
RUN_ENDED = "the run ended before it was applied"
NOT_KNOWN = (
    "the attempt that was given it fell silent and a newer one began: whether it was carried out is not known; "
    "ask again if it is still wanted"
)
_ENDS = frozenset({CommandState.APPLIED, CommandState.REFUSED, CommandState.EXPIRED})


def pending_for(
    conn: Connection,
    run: str,
    now: datetime,
    attempt: str = "",
    *,
    heir_of: Collection[str] = (),
    newest: bool = True,
) -> tuple[Command, ...]:
    """What rides on the next receipt: the same commands again until an outcome or their expiry ends them.

    A receipt may get lost and the trainer knows by id what it has seen; the first hand-out is recorded, once.
    Needs a write transaction, in which the run is locked.
    """
    waiting = store.waiting(conn, run, now)
    theirs = tuple(view for view in waiting if may_have(view, attempt, heir_of, newest=newest))
    found = []
    for view in _known_to(conn, run, theirs):
        if view.state is CommandState.PENDING or view.handed_to != attempt:
            delivered = replace(view, state=CommandState.DELIVERED, handed_to=attempt)
            if not store.change(conn, delivered, before=[view.state]):
                continue
            audit(conn, view, who=SERVICE, what="delivered", detail="", now=now)
        found.append(view)
    return tuple(command_of(view, now) for view in found)


def may_have(view: CommandView, attempt: str, heir_of: Collection[str], *, newest: bool) -> bool:
    """What an attempt was given is that one's for good, however silent it is and whatever the clocks say: it may
    have carried it out, or may yet. Only who has that one's journal after its end knows, and is given it then.
    """
    if view.handed_to == attempt:
        return True
    return newest and (not view.handed_to or view.handed_to in heir_of)


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
    """Ends what nobody decided or fetched in time, what came too late for the run, and what was lost with an
    attempt; how many those are. News of any of them corrects that.

    One run in one transaction, as everywhere here: the audit's lock comes after a run's, never before it.
    """
    over = locked_subject(conn, run).phase in store.ENDED
    done = 0
    for view in store.overdue(conn, run, now):
        state, reason = _end_of(view, now, over=over)
        ended = replace(view, state=state, reason=reason, done_at=now)
        if store.change(conn, ended, before=[view.state]):
            audit(conn, ended, who=SERVICE, what=state.value, detail=reason, now=now)
            done += 1
    return done


def _end_of(view: CommandView, now: datetime, *, over: bool) -> tuple[CommandState, str]:
    if view.expires_at <= now:
        return CommandState.EXPIRED, f"nobody acted on it while it was {view.state.value}"
    return (CommandState.REFUSED, RUN_ENDED) if over else (CommandState.EXPIRED, NOT_KNOWN)


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
