"""What is in force, and how far one command may move it: pure arithmetic on what earlier commands did.

A change is bounded thrice: by the user's own value (`bounds_for`), by what one command may do to the value in
force, and by what all commands at one step may do together.
"""

from __future__ import annotations

import math
import sys
from dataclasses import replace

from rlvitals.contract.alert import Proposal
from rlvitals.contract.command import Bounds, CommandKind, CommandState, Knob
from rlvitals.contract.view import CommandView
from rlvitals_monitor.control.bounds import Limits, bounds_for, users_value
from rlvitals_monitor.control.situation import Situation

_SLACK = 1e-9
"""A tenth of 0.7 that a person types may be a last digit below 0.7 / 10."""


def in_force(proposal: Proposal, situation: Situation) -> float | None:
    """The value as the last applied command left it, else the user's own; None where nobody knows.

    Of the learning rate it is the factor on the user's own, since its commands multiply.
    """
    applied = applied_before(proposal, situation)
    if proposal.kind is CommandKind.SCALE_LR:
        return math.prod(_factor(past) for past in applied)
    told = next((past.after for past in reversed(applied) if _known(past.after)), None)
    return _users(proposal, situation) if told is None else told


def user_bounds(proposal: Proposal, situation: Situation, limits: Limits, *, automatic: bool) -> Bounds | None:
    """How far the argument may be from the user's own value; None where there is none to start from."""
    knob = knob_of(proposal, situation)
    if proposal.kind is CommandKind.SET_KNOB:
        return None if knob is None else Bounds(low=knob.low, high=knob.high)
    bounds = bounds_for(proposal.kind, situation.config, limits, automatic=automatic)
    now = in_force(proposal, situation)
    if bounds is None or proposal.kind is not CommandKind.SCALE_LR or now is None:
        return bounds
    return Bounds(low=bounds.low / now, high=min(bounds.high / now, sys.float_info.max))


def step_bounds(
    proposal: Proposal, situation: Situation, limits: Limits, *, slack: float = _SLACK
) -> Bounds | None:
    """How far the argument may be from what is in force; None where nothing bounds the change."""
    now = in_force(proposal, situation)
    knob = knob_of(proposal, situation)
    if now is None or proposal.kind is CommandKind.PAUSE:
        return None
    before = _before_step(proposal, situation, now)
    if knob is not None:
        widest = knob.max_change
        return None if widest is None else _meet(_around(now, widest, slack), _around(before, widest, slack))
    both = _meet(_times(now, limits.command_factor, slack), _times(before, limits.step_factor, slack))
    return Bounds(low=both.low / now, high=both.high / now) if proposal.kind is CommandKind.SCALE_LR else both


def bounds_of(proposal: Proposal, situation: Situation, limits: Limits, *, automatic: bool) -> Bounds | None:
    """All bounds on the argument at once, as the trainer is told them."""
    user = user_bounds(proposal, situation, limits, automatic=automatic)
    step = step_bounds(proposal, situation, limits)
    return user if user is None or step is None else _meet(user, step)


def nearest(proposal: Proposal, situation: Situation, limits: Limits) -> Proposal:
    """The same with as much of its change as one command may make."""
    bounds = step_bounds(proposal, situation, limits, slack=0.0)
    if bounds is None or proposal.argument is None or not math.isfinite(proposal.argument):
        return proposal
    return replace(proposal, argument=min(max(proposal.argument, bounds.low), bounds.high))


def applied_before(proposal: Proposal, situation: Situation) -> list[CommandView]:
    """What has changed the same number so far, oldest first."""
    same = [past for past in situation.history if past.kind is proposal.kind and past.knob == proposal.knob]
    return [past for past in same if past.state is CommandState.APPLIED]


def knob_of(proposal: Proposal, situation: Situation) -> Knob | None:
    return situation.knobs.get(proposal.knob) if proposal.kind is CommandKind.SET_KNOB else None


def _users(proposal: Proposal, situation: Situation) -> float | None:
    knob = knob_of(proposal, situation)
    return knob.value if knob is not None else users_value(proposal.kind, situation.config)


def _before_step(proposal: Proposal, situation: Situation, now: float) -> float:
    """What was in force when the run came to the step that it is at."""
    here = [c for c in applied_before(proposal, situation) if c.step is not None and c.step == situation.step]
    if not here:
        return now
    if proposal.kind is CommandKind.SCALE_LR:
        done = math.prod(_factor(past) for past in here)
        return now / done if done > 0 else now
    first = here[0].before
    return first if _known(first) and first is not None else now


def _factor(past: CommandView) -> float:
    """What a command did to the learning rate: as read back, else as asked for."""
    read = past.before is not None and past.after is not None and past.before > 0 and past.after > 0
    ratio = past.after / past.before if read and past.after is not None and past.before is not None else math.nan
    if math.isfinite(ratio) and ratio > 0:
        return ratio
    asked = past.argument
    return asked if asked is not None and math.isfinite(asked) and asked > 0 else 1.0


def _known(value: float | None) -> bool:
    return value is not None and math.isfinite(value)


def _times(value: float, factor: float, slack: float) -> Bounds:
    wide = factor * (1 + slack)
    return Bounds(low=value / wide, high=min(value * wide, sys.float_info.max))


def _around(value: float, distance: float, slack: float) -> Bounds:
    wide = distance + slack * max(abs(value), distance)
    return Bounds(low=value - wide, high=value + wide)


def _meet(one: Bounds, other: Bounds) -> Bounds:
    return Bounds(low=max(one.low, other.low), high=min(one.high, other.high))
