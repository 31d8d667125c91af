"""Commands as they are kept: the run they are for, the row, and the audit line of each change."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection

from rlvitals.contract.alert import Proposal
from rlvitals.contract.command import Command, CommandKind, CommandState
from rlvitals.contract.view import CommandView
from rlvitals_monitor.control.situation import Situation
from rlvitals_monitor.store import commands as store
from rlvitals_monitor.store.audit import append_audit
from rlvitals_monitor.store.commands import Subject
from rlvitals_monitor.store.runs import no_run


def locked_subject(conn: Connection, run: str) -> Subject:
    """The run, once it is our turn on it. Raises NotFound."""
    subject = store.read_subject(conn, run, lock=True)
    if subject is None:
        raise no_run(conn, run)
    return subject


def situation_of(conn: Connection, subject: Subject, proposal: Proposal) -> Situation:
    history = store.history(conn, subject.info.id, proposal.kind)
    if proposal.kind is CommandKind.SET_KNOB:
        history = tuple(past for past in history if past.knob == proposal.knob)
    return Situation(
        capabilities=subject.info.capabilities,
        config=subject.info.config,
        project=subject.info.project,
        over=subject.phase in store.ENDED,
        step=subject.last_step,
        history=history,
        knobs=subject.info.knobs,
        changes=store.count_changes(conn, subject.info.id),
    )


def view_of(command: Command, run: str, state: CommandState, persons: int, now: datetime) -> CommandView:
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
        knob=command.knob,
        persons=persons,
    )


def command_of(view: CommandView, now: datetime) -> Command:
    """As it is handed out now."""
    return Command(
        id=view.id,
        kind=view.kind,
        expires_at=view.expires_at,
        argument=view.argument,
        bounds=view.bounds,
        who=view.decided_by or view.who,
        why=view.why,
        knob=view.knob,
        valid_s=max(0.0, (view.expires_at - now).total_seconds()),
    )


def audit(conn: Connection, view: CommandView, *, who: str, what: str, detail: str, now: datetime) -> None:
    append_audit(conn, at=now, run=view.run, command=view.id, who=who, what=what, detail=detail)


def told(view: CommandView) -> str:
    """What it is and why, for the audit."""
    named = f"{view.kind.value} {view.knob}".strip()
    shown = "" if view.argument is None else f" {view.argument:g}"
    return f"{named}{shown}" + (f": {view.reason or view.why}" if view.reason or view.why else "")
