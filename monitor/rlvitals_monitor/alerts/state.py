"""The alert state machine, as in Prometheus: inactive → pending → firing → resolved. Pure; time is an argument.

Unknown neither fires nor clears: a pending or firing alert waits until its rule can be judged again. A resolved
alert is over; when its condition holds again, a new one begins.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from rlvitals.contract.alert import AlertState, Truth
from rlvitals_monitor.rules.evaluate import Evaluation
from rlvitals_monitor.rules.rule import Rule


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Where one rule stands on one attempt.

    ``held`` counts the observed steps running on which it was active, ``clear`` those on which it might close;
    ``opened_step`` names the open alert together with the rule. ``over``: a newer attempt of the run ended it, and
    on this one it is not opened again.
    """

    state: AlertState = AlertState.INACTIVE
    opened_step: int = -1
    since_step: int = -1
    since_time: datetime | None = None
    held: int = 0
    clear: int = 0
    clear_since: datetime | None = None
    over: bool = False

    @property
    def is_open(self) -> bool:
        return self.state in (AlertState.PENDING, AlertState.FIRING)


INACTIVE = Standing()
OVER = Standing(over=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One transition: from where to where, and why in words."""

    before: AlertState
    after: AlertState
    reason: str


Outcome = tuple[Standing, Change | None]


def advance(
    standing: Standing, evaluation: Evaluation, rule: Rule, step: int, time: datetime, *, inhibited: bool = False
) -> Outcome:
    """One observed step. ``inhibited``: a stronger rule of the alert or its cause fires, so it does not begin."""
    if standing.state is AlertState.FIRING:
        return _firing(standing, evaluation, rule, time)
    if standing.state is AlertState.PENDING:
        return _pending(standing, evaluation, rule, time, inhibited)
    if evaluation.truth is not Truth.ACTIVE or inhibited or standing.over:
        return standing, None
    began = Standing(
        state=AlertState.PENDING,
        opened_step=step,
        since_step=evaluation.since_step,
        since_time=evaluation.since_time,
        held=1,
    )
    return _begin(began, rule, time, AlertState.INACTIVE)


def withdraw(standing: Standing, reason: str) -> Outcome:
    """Ends an open alert whose rule or attempt is gone."""
    if standing.state is AlertState.FIRING:
        return INACTIVE, Change(before=AlertState.FIRING, after=AlertState.RESOLVED, reason=reason)
    if standing.state is AlertState.PENDING:
        return INACTIVE, Change(before=AlertState.PENDING, after=AlertState.INACTIVE, reason=reason)
    return standing, None


def _pending(standing: Standing, evaluation: Evaluation, rule: Rule, time: datetime, inhibited: bool) -> Outcome:
    if inhibited:
        return withdraw(standing, "a stronger rule of the alert, or its cause, fires")
    if evaluation.truth is Truth.UNKNOWN:
        return standing, None
    if evaluation.truth is Truth.INACTIVE:
        return withdraw(standing, f"held for {_steps(standing.held)}, {rule.hold} needed")
    return _begin(replace(standing, held=standing.held + 1), rule, time, AlertState.PENDING)


def _begin(standing: Standing, rule: Rule, time: datetime, before: AlertState) -> Outcome:
    if rule.hold.over(standing.held, standing.since_time or time, time):
        reason = f"held on {rule.of[0]} of {rule.of[1]} steps" if rule.of[1] > 1 else f"held for {rule.hold}"
        fired = replace(standing, state=AlertState.FIRING)
        return fired, Change(before=before, after=AlertState.FIRING, reason=reason)
    if before is AlertState.PENDING:
        return standing, None
    return standing, Change(before=before, after=AlertState.PENDING, reason=f"must hold for {rule.hold}")


def _firing(standing: Standing, evaluation: Evaluation, rule: Rule, time: datetime) -> Outcome:
    if evaluation.clear is Truth.UNKNOWN:
        return standing, None
    if evaluation.clear is Truth.INACTIVE:
        return (replace(standing, clear=0, clear_since=None) if standing.clear else standing), None
    count, since = standing.clear + 1, standing.clear_since or time
    if not rule.keep_firing_for.over(count, since, time):
        return replace(standing, clear=count, clear_since=since), None
    reason = f"clear for {rule.keep_firing_for}" if rule.clear is not None else "no longer holds"
    return INACTIVE, Change(before=AlertState.FIRING, after=AlertState.RESOLVED, reason=reason)


def _steps(count: int) -> str:
    return f"{count} step{'' if count == 1 else 's'}"
