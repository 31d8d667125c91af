"""The effect of a stored command: which steps to look at, what was measured on them, and the verdict."""

from __future__ import annotations

from sqlalchemy import Connection

from rlvitals.contract.command import ARGUMENT_KINDS, CommandState
from rlvitals.contract.steering import EffectView
from rlvitals.contract.view import CommandView
from rlvitals_monitor.control.effect import WINDOW, Effect, Verdict, Window, guides, judge
from rlvitals_monitor.control.kl_choices import target_of
from rlvitals_monitor.errors import NotFound
from rlvitals_monitor.store import commands
from rlvitals_monitor.store.commands import ENDED, Subject
from rlvitals_monitor.store.surroundings import AttemptSpan, attempt_at, read_points


def effect_of(conn: Connection, command: str) -> EffectView:
    """Raises NotFound."""
    view = commands.find(conn, command)
    subject = None if view is None else commands.read_subject(conn, view.run)
    if view is None or subject is None:
        raise NotFound(f"there is no command {command}")
    if view.state is not CommandState.APPLIED or view.step is None:
        reason = f"it is {view.state.value}" if view.step is None else f"it was {view.state.value}"
        return _told(view, Effect(verdict=Verdict.NOT_JUDGED, reason=f"{reason}, so it had no effect"))
    attempt = attempt_at(conn, view.run, view.done_at or view.created_at)
    if attempt is None or attempt.last_step is None:
        return _told(view, Effect(verdict=Verdict.TOO_EARLY, reason="no step was reported yet"))
    target = target_of(conn, subject)
    window = _window(view, view.step, attempt, subject, _other_changes(conn, view, attempt))
    metrics = [name for guide in guides(view.kind, target) for name in guide.names]
    found = read_points(conn, attempt.number, metrics, window.first + 1, window.last)
    return _told(view, judge(view.kind, target, window, found), window, attempt)


def _other_changes(conn: Connection, view: CommandView, attempt: AttemptSpan) -> list[int]:
    """Steps of the attempt at which another command changed a number."""
    past = (c for kind in ARGUMENT_KINDS for c in commands.history(conn, view.run, kind))
    return [
        c.step
        for c in past
        if c.state is CommandState.APPLIED
        and c.id != view.id
        and c.step is not None
        and (c.done_at is None or c.done_at >= attempt.started_at)
    ]


def _window(view: CommandView, step: int, attempt: AttemptSpan, subject: Subject, others: list[int]) -> Window:
    """As far as nothing else was changed, at most `WINDOW` steps on either side."""
    began = attempt.first_step if attempt.first_step is not None else step
    reached = attempt.last_step if attempt.last_step is not None else step
    before = max((other for other in others if other <= step), default=None)
    after = min((other for other in others if other > step), default=None)
    last = step + WINDOW if after is None else min(after - 1, step + WINDOW)
    over = subject.phase in ENDED or not attempt.newest
    because = ""
    if after is not None and after <= step + WINDOW:
        because = f"for another command changed a number at step {after}"
    elif before is not None and before > step - WINDOW:
        because = f"for another command changed a number at step {before}"
    elif over and reached < step + WINDOW:
        because = "for the run ended"
    return Window(
        first=max(began - 1, step - WINDOW - 1, began - 1 if before is None else before),
        step=step,
        last=min(last, reached),
        closed=over or (after is not None and reached >= last),
        because=because,
    )


def _told(
    view: CommandView, effect: Effect, window: Window | None = None, attempt: AttemptSpan | None = None
) -> EffectView:
    return EffectView(
        command_id=view.id,
        run=view.run,
        verdict=effect.verdict.value,
        reason=effect.reason,
        attempt=attempt.id if attempt is not None else "",
        step=view.step,
        first=None if window is None else window.first + 1,
        last=None if window is None else window.last,
        signals=effect.signals,
    )
