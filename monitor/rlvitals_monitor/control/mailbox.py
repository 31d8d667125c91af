"""The life of a command: proposed or asked for, decided, handed out on a receipt, answered, or expired.

Every function takes the caller's transaction and writes an audit line for each change. Decisions are conditional
updates: of two people who decide at once the second gets a `Conflict` that says what the first one did.
"""

from __future__ import annotations

import secrets
from dataclasses import replace
from datetime import datetime, timedelta

from sqlalchemy import Connection

from rlvitals.contract.alert import Proposal, Transition
from rlvitals.contract.command import Command, CommandKind, CommandState, Outcome
from rlvitals.contract.report import Phase
from rlvitals.contract.view import CommandView
from rlvitals_monitor.control.bounds import Limits, bounds_for
from rlvitals_monitor.control.policy import (
    OPEN,
    Cause,
    Policies,
    Refusal,
    Situation,
    Why,
    admit,
    argument_of,
    check_argument,
    command_id,
    decide,
    judge,
)
from rlvitals_monitor.errors import BadRequest, Conflict, NotFound
from rlvitals_monitor.store import commands as store
from rlvitals_monitor.store.commands import DETAIL_LIMIT, WHO_LIMIT, Subject
from rlvitals_monitor.store.words import storable

SERVICE, TRAINER = "service", "trainer"
_ENDED = frozenset({Phase.FINISHED, Phase.FAILED})
_ENDS = frozenset({CommandState.APPLIED, CommandState.REFUSED, CommandState.EXPIRED})
# What the trainer did before it heard of an expiry is true all the same.
_ANSWERABLE = (CommandState.PENDING, CommandState.DELIVERED, CommandState.EXPIRED)


def propose(
    conn: Connection, transition: Transition, policies: Policies, now: datetime, limits: Limits | None = None
) -> CommandView | Refusal:
    """Turns the proposal of an alert that began to fire into a command, or says by name why not. Idempotent."""
    limits = limits or Limits()
    alert = transition.alert
    if alert.proposal is None:
        return Refusal(why=Why.NOTHING_PROPOSED, detail=f"the rule {alert.rule} proposes no action")
    subject = _subject(conn, alert.run)
    known = store.find(conn, command_id(transition.id))
    if known is not None:
        return known
    policy = policies.of(alert.rule, subject.info.project)
    decided = decide(transition, _situation(conn, subject, alert.proposal.kind), policy, limits, now)
    if isinstance(decided, Refusal):
        if decided.why is not Why.NOT_FIRING:
            _audit_refusal(conn, alert.run, Cause.of(transition), decided, now)
        return decided
    view = _view(decided.command, alert.run, decided.state, now)
    view = replace(view, alert_id=alert.id, rule=alert.rule, asked_step=transition.step, reason=decided.note)
    return _begin(conn, view, now)


def suggest(
    conn: Connection,
    run: str,
    proposal: Proposal,
    cause: Cause,
    step: int,
    policies: Policies,
    now: datetime,
    limits: Limits | None = None,
) -> CommandView | Refusal:
    """The same for what a KL policy wants at a step: ``cause.who`` is looked up as a rule is."""
    limits = limits or Limits()
    subject = _subject(conn, run)
    known = store.find(conn, command_id(cause.source))
    if known is not None:
        return known
    policy = policies.of(cause.who, subject.info.project)
    decided = judge(cause, proposal, _situation(conn, subject, proposal.kind), policy, limits, now)
    if isinstance(decided, Refusal):
        _audit_refusal(conn, run, cause, decided, now)
        return decided
    view = replace(_view(decided.command, run, decided.state, now), asked_step=step, reason=decided.note)
    return _begin(conn, view, now)


def _begin(conn: Connection, view: CommandView, now: datetime) -> CommandView:
    store.add(conn, view)
    _audit(conn, view, who=view.who, what=view.state.value, detail=_told(view), now=now)
    return view


def request(
    conn: Connection,
    run: str,
    kind: CommandKind,
    argument: float | None,
    who: str,
    why: str,
    now: datetime,
    limits: Limits | None = None,
) -> CommandView:
    """A person's own command, which needs no further approval. Raises NotFound, BadRequest or Conflict."""
    limits = limits or Limits()
    subject = _subject(conn, run)
    proposal = Proposal(kind=kind, argument=argument)
    _raise(admit(proposal, _situation(conn, subject, kind), limits))
    command = Command(
        id=secrets.token_hex(16),
        kind=kind,
        argument=argument_of(proposal, limits),
        bounds=bounds_for(kind, subject.info.config, limits, automatic=False),
        expires_at=now + timedelta(seconds=limits.delivery_open_s),
        who=storable(who, WHO_LIMIT),
        why=storable(why, DETAIL_LIMIT),
    )
    view = replace(
        _view(command, run, CommandState.PENDING, now),
        decided_by=command.who,
        decided_at=now,
        asked_step=subject.last_step,
    )
    store.add(conn, view)
    _audit(conn, view, who=who, what="requested", detail=_told(view), now=now)
    return view


def approve(
    conn: Connection,
    command: str,
    who: str,
    now: datetime,
    argument: float | None = None,
    limits: Limits | None = None,
) -> CommandView:
    """Releases a proposal to the trainer, with another ``argument`` if given.

    Raises NotFound, BadRequest (the argument), Conflict (decided already, or expired).
    """
    limits = limits or Limits()
    view, subject = _locked(conn, command)
    _still_open(view, now)
    if argument is not None:
        situation = _situation(conn, subject, view.kind)
        _raise(check_argument(Proposal(kind=view.kind, argument=argument), situation, limits))
        view = replace(view, argument=argument)
    approved = replace(
        view,
        state=CommandState.PENDING,
        decided_by=storable(who, WHO_LIMIT),
        decided_at=now,
        expires_at=now + timedelta(seconds=limits.delivery_open_s),
    )
    _move(conn, approved, CommandState.PROPOSED)
    _audit(conn, approved, who=who, what="approved", detail=_told(approved), now=now)
    return approved


def deny(conn: Connection, command: str, who: str, reason: str, now: datetime) -> CommandView:
    """Ends a proposal. Raises NotFound or Conflict."""
    view, _ = _locked(conn, command)
    _still_open(view, now)
    denied = replace(
        view,
        state=CommandState.DENIED,
        decided_by=storable(who, WHO_LIMIT),
        decided_at=now,
        reason=storable(reason, DETAIL_LIMIT),
    )
    _move(conn, denied, CommandState.PROPOSED)
    _audit(conn, denied, who=who, what="denied", detail=reason, now=now)
    return denied


def pending_for(conn: Connection, run: str, now: datetime) -> tuple[Command, ...]:
    """What rides on the next receipt: the same commands again until an outcome or their expiry ends them.

    A receipt may get lost and the trainer knows by id what it has seen; the first hand-out is recorded, once.
    Needs a write transaction.
    """
    found = store.waiting(conn, run, now)
    for view in found:
        if view.state is CommandState.PENDING:
            delivered = replace(view, state=CommandState.DELIVERED)
            if store.change(conn, delivered, before=[CommandState.PENDING]):
                _audit(conn, view, who=SERVICE, what="delivered", detail="", now=now)
    return tuple(_command(view) for view in found)


def record_outcome(conn: Connection, run: str, outcome: Outcome, now: datetime) -> bool:
    """What the trainer says became of a command. False, and no change, for news that is old or not its own."""
    view = store.find(conn, outcome.command_id)
    if view is None or view.run != run or outcome.state not in _ENDS or outcome.state is view.state:
        return False
    ended = replace(
        view,
        state=outcome.state,
        reason=storable(outcome.reason, DETAIL_LIMIT) or view.reason,
        before=outcome.before,
        after=outcome.after,
        step=outcome.step,
        done_at=now,
    )
    if not store.change(conn, ended, before=_ANSWERABLE):
        return False
    _audit(conn, ended, who=TRAINER, what=ended.state.value, detail=_answered(outcome), now=now)
    return True


def expire(conn: Connection, now: datetime) -> tuple[str, ...]:
    """Ends what nobody decided or fetched in time; answers the runs concerned."""
    touched: list[str] = []
    for view in store.overdue(conn, now, OPEN):
        reason = f"nobody acted on it while it was {view.state.value}"
        expired = replace(view, state=CommandState.EXPIRED, reason=reason, done_at=now)
        if store.change(conn, expired, before=[view.state]):
            _audit(conn, expired, who=SERVICE, what="expired", detail=reason, now=now)
            touched.append(view.run)
    return tuple(dict.fromkeys(touched))


def _subject(conn: Connection, run: str) -> Subject:
    subject = store.read_subject(conn, run, lock=True)
    if subject is None:
        raise NotFound(f"there is no run {run}")
    return subject


def _situation(conn: Connection, subject: Subject, kind: CommandKind) -> Situation:
    return Situation(
        capabilities=subject.info.capabilities,
        config=subject.info.config,
        over=subject.phase in _ENDED,
        step=subject.last_step,
        history=store.history(conn, subject.info.id, kind),
    )


def _locked(conn: Connection, command: str) -> tuple[CommandView, Subject]:
    """The command as it is once it is our turn on its run."""
    found = store.find(conn, command)
    if found is None:
        raise NotFound(f"there is no command {command}")
    subject = _subject(conn, found.run)
    return store.find(conn, command) or found, subject


def _still_open(view: CommandView, now: datetime) -> None:
    if view.state is not CommandState.PROPOSED:
        by = f" by {view.decided_by}" if view.decided_by else ""
        raise Conflict(f"command {view.id} is {view.state.value}{by} and waits for no decision", field="state")
    if view.expires_at <= now:
        raise Conflict(f"command {view.id} expired at {view.expires_at.isoformat()}", field="expires_at")


def _move(conn: Connection, view: CommandView, before: CommandState) -> None:
    if not store.change(conn, view, before=[before]):
        raise Conflict(f"command {view.id} is no longer {before.value}", field="state")


def _raise(refusal: Refusal | None) -> None:
    if refusal is None:
        return
    if refusal.why in (Why.ARGUMENT, Why.BOUNDS, Why.UNCHANGED):
        raise BadRequest(str(refusal), field="argument")
    raise Conflict(str(refusal), field="kind")


def _view(command: Command, run: str, state: CommandState, now: datetime) -> CommandView:
    return CommandView(
        id=command.id,
        run=run,
        kind=command.kind,
        state=state,
        created_at=now,
        expires_at=command.expires_at,
        argument=command.argument,
        bounds=command.bounds,
        who=command.who,
        why=command.why,
    )


def _command(view: CommandView) -> Command:
    return Command(
        id=view.id,
        kind=view.kind,
        expires_at=view.expires_at,
        argument=view.argument,
        bounds=view.bounds,
        who=view.decided_by or view.who,
        why=view.why,
    )


def _audit(conn: Connection, view: CommandView, *, who: str, what: str, detail: str, now: datetime) -> None:
    store.append_audit(conn, at=now, run=view.run, command=view.id, who=who, what=what, detail=detail)


def _audit_refusal(conn: Connection, run: str, cause: Cause, refusal: Refusal, now: datetime) -> None:
    ours = command_id(cause.source)
    if not store.is_audited(conn, run=run, command=ours):
        detail = str(refusal)
        store.append_audit(conn, at=now, run=run, command=ours, who=cause.who, what="not proposed", detail=detail)


def _told(view: CommandView) -> str:
    shown = "" if view.argument is None else f" {view.argument:g}"
    return f"{view.kind.value}{shown}" + (f": {view.reason or view.why}" if view.reason or view.why else "")


def _answered(outcome: Outcome) -> str:
    change = f"{_number(outcome.before)} → {_number(outcome.after)}"
    at = "" if outcome.step is None else f"step {outcome.step}, "
    return f"{at}{change}" + (f": {outcome.reason}" if outcome.reason else "")


def _number(value: float | None) -> str:
    return "missing" if value is None else f"{value:g}"
