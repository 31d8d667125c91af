"""Commands come to be: proposed by a rule or a policy, asked for by a person, approved or denied.

Every function takes the caller's transaction and writes an audit line for each change. Decisions are conditional
updates: of two people who decide at once the second gets a `Conflict` that says what the first one did.
"""

from __future__ import annotations

import secrets
from dataclasses import replace
from datetime import datetime, timedelta

from sqlalchemy import Connection

from rlvitals.contract.alert import Proposal, Transition
from rlvitals.contract.command import Command, CommandKind, CommandState
from rlvitals.contract.view import CommandView
from rlvitals_monitor.control.admission import admit, alive, check_argument
from rlvitals_monitor.control.bounds import Limits
from rlvitals_monitor.control.change import bounds_of
from rlvitals_monitor.control.ledger import audit, locked_subject, situation_of, told, view_of
from rlvitals_monitor.control.policy import Cause, Decision, Policies, argument_of, command_id, decide, judge
from rlvitals_monitor.control.quorum import has_spoken, is_enough, persons
from rlvitals_monitor.control.situation import Refusal, Why
from rlvitals_monitor.errors import BadRequest, Conflict, NotFound
from rlvitals_monitor.store import commands as store
from rlvitals_monitor.store.audit import DETAIL_LIMIT, WHO_LIMIT, append_audit, is_audited
from rlvitals_monitor.store.commands import Subject
from rlvitals_monitor.store.policies import chosen_policies
from rlvitals_monitor.store.voices import add_voice, take_back_voices
from rlvitals_monitor.store.words import storable


def propose(
    conn: Connection, transition: Transition, policies: Policies, now: datetime, limits: Limits | None = None
) -> CommandView | Refusal:
    """Turns the proposal of an alert that began to fire into a command, or says by name why not. Idempotent."""
    limits = limits or Limits()
    alert = transition.alert
    if alert.proposal is None:
        return Refusal(why=Why.NOTHING_PROPOSED, detail=f"the rule {alert.rule} proposes no action")
    subject = locked_subject(conn, alert.run)
    known = store.find(conn, command_id(transition.id))
    if known is not None:
        return known
    policy = policies.overlaid(chosen_policies(conn)).of(alert.rule, subject.info.project, alert.run)
    decided = decide(transition, situation_of(conn, subject, alert.proposal), policy, limits, now)
    if isinstance(decided, Refusal):
        if decided.why is not Why.NOT_FIRING:
            _audit_refusal(conn, alert.run, Cause.of(transition), decided, now)
        return decided
    view = _decided(decided, subject, limits, now)
    view = replace(view, alert_id=alert.id, rule=alert.rule, asked_step=transition.step)
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
    subject = locked_subject(conn, run)
    known = store.find(conn, command_id(cause.source))
    if known is not None:
        return known
    policy = policies.overlaid(chosen_policies(conn)).of(cause.who, subject.info.project, run)
    decided = judge(cause, proposal, situation_of(conn, subject, proposal), policy, limits, now)
    if isinstance(decided, Refusal):
        _audit_refusal(conn, run, cause, decided, now)
        return decided
    return _begin(conn, replace(_decided(decided, subject, limits, now), asked_step=step), now)


def request(
    conn: Connection,
    run: str,
    kind: CommandKind,
    argument: float | None,
    who: str,
    why: str,
    now: datetime,
    limits: Limits | None = None,
    *,
    knob: str = "",
) -> CommandView:
    """A person's own command. It needs no further approval; where two people are asked it waits for another one.

    Raises NotFound, BadRequest or Conflict.
    """
    limits = limits or Limits()
    subject = locked_subject(conn, run)
    proposal = Proposal(kind=kind, argument=argument, knob=knob)
    situation = situation_of(conn, subject, proposal)
    _raise(admit(proposal, situation, limits))
    wanted = limits.persons(kind, subject.info.project)
    state = CommandState.PENDING if wanted == 1 else CommandState.PROPOSED
    open_s = limits.delivery_open_s if wanted == 1 else limits.proposal_open_s
    command = Command(
        id=secrets.token_hex(16),
        kind=kind,
        argument=argument_of(proposal, limits),
        bounds=bounds_of(proposal, situation, limits, automatic=False),
        expires_at=now + timedelta(seconds=open_s),
        who=storable(who, WHO_LIMIT),
        why=storable(why, DETAIL_LIMIT),
        knob=knob,
    )
    view = replace(view_of(command, run, state, wanted, now), asked_step=subject.last_step)
    if state is CommandState.PENDING:
        view = replace(view, decided_by=command.who, decided_at=now)
    store.add(conn, view)
    audit(conn, view, who=who, what="requested", detail=told(view), now=now)
    if state is CommandState.PROPOSED:
        add_voice(conn, view.id, command.who, named=True, at=now)
    return store.find(conn, view.id) or view


def approve(
    conn: Connection,
    command: str,
    who: str,
    now: datetime,
    argument: float | None = None,
    limits: Limits | None = None,
    *,
    named: bool = True,
) -> CommandView:
    """Releases a proposal to the trainer, with another ``argument`` if given, once enough people have approved it.

    ``named`` is False for who came by a link without a login: such a voice is enough where one is, and never
    counts where two people are asked. Another argument is another command: voices for the earlier one are void.
    Raises NotFound, BadRequest (the argument), Conflict (decided already, expired, the run over, or said before).
    """
    limits = limits or Limits()
    view, subject = _locked(conn, command)
    _still_open(view, now)
    proposal = Proposal(kind=view.kind, argument=view.argument if argument is None else argument, knob=view.knob)
    situation = situation_of(conn, subject, proposal)
    _raise(alive(situation))
    if argument is not None:
        _raise(check_argument(proposal, situation, limits))
    if proposal.argument != view.argument:
        take_back_voices(conn, view.id)
        view = replace(view, argument=proposal.argument, voices=())
    voice = storable(who, WHO_LIMIT)
    if has_spoken(voice, view.voices):
        raise Conflict(f"{voice} has approved command {view.id} already; it needs another person", field="who")
    add_voice(conn, view.id, voice, named=named, at=now)
    heard = store.voices_for(conn, view.id)
    if not is_enough(view.persons, heard):
        return _wait_for_others(conn, replace(view, voices=heard), who, now)
    approved = replace(
        view,
        state=CommandState.PENDING,
        decided_by=storable(", ".join(persons(heard)) or voice, WHO_LIMIT),
        decided_at=now,
        expires_at=now + timedelta(seconds=limits.delivery_open_s),
        voices=heard,
    )
    _move(conn, approved, CommandState.PROPOSED)
    audit(conn, approved, who=who, what="approved", detail=told(approved), now=now)
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
    audit(conn, denied, who=who, what="denied", detail=reason, now=now)
    return denied


def _decided(decided: Decision, subject: Subject, limits: Limits, now: datetime) -> CommandView:
    wanted = limits.persons(decided.command.kind, subject.info.project)
    view = view_of(decided.command, subject.info.id, decided.state, wanted, now)
    return replace(view, reason=decided.note)


def _begin(conn: Connection, view: CommandView, now: datetime) -> CommandView:
    store.add(conn, view)
    audit(conn, view, who=view.who, what=view.state.value, detail=told(view), now=now)
    return view


def _wait_for_others(conn: Connection, view: CommandView, who: str, now: datetime) -> CommandView:
    _move(conn, view, CommandState.PROPOSED)
    said = f"{len(persons(view.voices))} of {view.persons} people have approved {told(view)}"
    audit(conn, view, who=who, what="voice", detail=said, now=now)
    return view


def _locked(conn: Connection, command: str) -> tuple[CommandView, Subject]:
    """The command as it is once it is our turn on its run."""
    found = store.find(conn, command)
    if found is None:
        raise NotFound(f"there is no command {command}")
    subject = locked_subject(conn, found.run)
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
    if refusal.why in (Why.ARGUMENT, Why.BOUNDS, Why.CHANGE, Why.UNCHANGED):
        raise BadRequest(str(refusal), field="argument")
    raise Conflict(str(refusal), field="kind")


def _audit_refusal(conn: Connection, run: str, cause: Cause, refusal: Refusal, now: datetime) -> None:
    ours = command_id(cause.source)
    if not is_audited(conn, run=run, command=ours):
        detail = str(refusal)
        append_audit(conn, at=now, run=run, command=ours, who=cause.who, what="not proposed", detail=detail)
