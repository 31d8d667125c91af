"""Whether a command may be given to a run at all, by a rule, a policy or a person. Pure."""

from __future__ import annotations

import math

from rlvitals.contract.alert import Proposal
from rlvitals.contract.command import ARGUMENT_KINDS, Bounds, CommandKind
from rlvitals_monitor.control.bounds import Limits
from rlvitals_monitor.control.change import applied_before, in_force, knob_of, step_bounds, user_bounds
from rlvitals_monitor.control.situation import OPEN, Refusal, Situation, Why


def admit(proposal: Proposal, situation: Situation, limits: Limits) -> Refusal | None:
    """For rules and people alike: the run can do it, the argument is in bounds, nothing of the kind is open."""
    return (
        alive(situation)
        or _capable(proposal, situation)
        or check_argument(proposal, situation, limits)
        or _alone(proposal.kind, situation)
        or _rested(proposal, situation, limits)
        or _affordable(proposal.kind, situation, limits)
    )


def alive(situation: Situation) -> Refusal | None:
    return Refusal(why=Why.RUN_OVER, detail="the run has ended") if situation.over else None


def check_argument(proposal: Proposal, situation: Situation, limits: Limits) -> Refusal | None:
    """Refuses what is missing, not finite, not positive, beyond what a person may approve, or no change at all."""
    kind, argument = proposal.kind, proposal.argument
    if kind not in ARGUMENT_KINDS and kind is not CommandKind.PAUSE:
        return _no_argument(kind, argument)
    if argument is None and kind is CommandKind.PAUSE:
        return None
    positive = kind is not CommandKind.SET_KNOB
    if argument is None or not math.isfinite(argument) or (positive and argument <= 0.0):
        shown = "none" if argument is None else f"{argument}"
        wanted = "finite, positive" if positive else "finite"
        return Refusal(why=Why.ARGUMENT, detail=f"{kind.value} needs a {wanted} argument, got {shown}")
    return _within(argument, proposal, situation, limits)


def _within(argument: float, proposal: Proposal, situation: Situation, limits: Limits) -> Refusal | None:
    bounds = user_bounds(proposal, situation, limits, automatic=False)
    if bounds is None:
        return Refusal(why=Why.NO_BASELINE, detail="the run did not report a positive kl_coef to be bounded by")
    if not bounds.allow(argument):
        return Refusal(why=Why.BOUNDS, detail=f"{argument:g} is outside {_shown(bounds)}")
    if proposal.kind is CommandKind.PAUSE:
        return None
    now, knob = in_force(proposal, situation), knob_of(proposal, situation)
    if argument == (1.0 if proposal.kind is CommandKind.SCALE_LR else now):
        return Refusal(why=Why.UNCHANGED, detail=f"{argument:g} is the value already")
    if now is None and knob is not None and knob.max_change is not None:
        detail = f"nobody knows the value of {proposal.knob}, which may change by {knob.max_change:g} at most"
        return Refusal(why=Why.NO_BASELINE, detail=detail)
    change = step_bounds(proposal, situation, limits)
    if change is not None and not change.allow(argument):
        return Refusal(
            why=Why.CHANGE, detail=f"{argument:g} is outside {_shown(change)}, what one step may change"
        )
    return None


def _capable(proposal: Proposal, situation: Situation) -> Refusal | None:
    kind = proposal.kind
    if kind is CommandKind.SET_KNOB and proposal.knob not in situation.knobs:
        known = ", ".join(sorted(situation.knobs)) or "none"
        return Refusal(why=Why.INCAPABLE, detail=f"the run has no knob {proposal.knob!r}; it has: {known}")
    reason = situation.capabilities.get(kind.value, "the run did not say that it can")
    return Refusal(why=Why.INCAPABLE, detail=f"{kind.value}: {reason}") if reason else None


def _no_argument(kind: CommandKind, argument: float | None) -> Refusal | None:
    if argument is None:
        return None
    return Refusal(why=Why.ARGUMENT, detail=f"{kind.value} takes no argument, got {argument}")


def _alone(kind: CommandKind, situation: Situation) -> Refusal | None:
    for past in situation.history:
        if past.kind is kind and past.state in OPEN:
            return Refusal(why=Why.ALREADY_OPEN, detail=f"{kind.value} {past.id} is {past.state.value}")
    return None


def _rested(proposal: Proposal, situation: Situation, limits: Limits) -> Refusal | None:
    """Some steps between two changes of one number, whoever asks; rules wait longer."""
    if proposal.kind not in ARGUMENT_KINDS or situation.step is None:
        return None
    knob = knob_of(proposal, situation)
    rest = limits.rest_steps if knob is None else knob.cool_down_steps
    applied = applied_before(proposal, situation)
    last = applied[-1].step if applied else None
    if last is None or not 0 <= situation.step - last < rest:
        return None
    detail = f"{situation.step - last} of {rest} steps since the last change"
    return Refusal(why=Why.COOL_DOWN, detail=detail)


def _affordable(kind: CommandKind, situation: Situation, limits: Limits) -> Refusal | None:
    if kind not in ARGUMENT_KINDS or situation.changes < limits.changes:
        return None
    return Refusal(why=Why.BUDGET, detail=f"{situation.changes} changes were made to this run already")


def _shown(bounds: Bounds) -> str:
    return f"{bounds.low:g} … {bounds.high:g}"
