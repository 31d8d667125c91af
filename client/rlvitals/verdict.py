"""Whether a command may be applied here and now: the client's own bounds, held whatever the service says. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from rlvitals.contract.command import ARGUMENT_KINDS, Command, CommandKind, CommandState, Knob


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlLimits:
    """The client's own bounds, held whatever the service says.

    The first four are factors on the user's own value; ``command_factor`` is the most that one command may move
    the value in force by, ``step_factor`` all commands at one step. ``cooldown_steps`` lie between two changes of
    one number, and a run takes ``changes`` at most.
    """

    kl_factor_low: float = 1e-3
    kl_factor_high: float = 10.0
    lr_factor_low: float = 0.01
    lr_factor_high: float = 2.0
    command_factor: float = 10.0
    step_factor: float = 10.0
    longest_pause_s: float = 3600.0
    cooldown_steps: int = 3
    changes: int = 200
    fail_open_s: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """All that a verdict depends on.

    ``last_change`` is the step at which this number was last changed, ``in_force`` its value now and
    ``before_step`` what it was when this step came; of the learning rate they are factors on the user's own.
    ``changes`` counts those of any number.
    """

    step: int
    limits: ControlLimits
    capabilities: Mapping[str, str]
    expired: bool = False
    user_value: float | None = None
    last_change: int | None = None
    in_force: float | None = None
    before_step: float | None = None
    knob: Knob | None = None
    changes: int = 0


def verdict(command: Command, at: Situation) -> tuple[CommandState, str]:
    """DELIVERED if the command may be applied now, else EXPIRED or REFUSED with the reason."""
    if at.expired:
        return CommandState.EXPIRED, f"nobody could apply it until {command.expires_at.isoformat()}"
    told = at.capabilities.get(command.kind.value, "" if not at.capabilities else "this integration cannot do it")
    reason = told or (_change_reason(command, at) if command.kind in ARGUMENT_KINDS else "")
    return (CommandState.REFUSED, reason) if reason else (CommandState.DELIVERED, "")


def _change_reason(command: Command, at: Situation) -> str:
    argument, is_knob = command.argument, command.kind is CommandKind.SET_KNOB
    if is_knob and at.knob is None:
        return f"there is no knob {command.knob!r} here"
    if argument is None or not math.isfinite(argument) or (argument <= 0 and not is_knob):
        return f"needs a finite argument{'' if is_knob else ' above 0'}, got {argument}"
    if command.bounds is not None and not command.bounds.allow(argument):
        return f"{argument:g} is outside its own bounds {command.bounds.low:g} … {command.bounds.high:g}"
    return (
        (_knob_reason(argument, at.knob, at) if at.knob is not None else _factor_reason(command, argument, at))
        or _cooldown_reason(at)
        or _budget_reason(at)
    )


def _knob_reason(argument: float, knob: Knob, at: Situation) -> str:
    if not knob.low <= argument <= knob.high:
        return f"{argument:g} is outside the knob's bounds {knob.low:g} … {knob.high:g}"
    if knob.max_change is None:
        return ""
    if at.in_force is None:
        return f"nobody knows its value, which may change by {knob.max_change:g} at most"
    before = at.in_force if at.before_step is None else at.before_step
    moved = max(abs(argument - at.in_force), abs(argument - before))
    # a float's own rounding is no larger change than was asked for
    allowed = knob.max_change * (1 + 1e-9)
    return f"{argument:g} is further from {at.in_force:g} than {knob.max_change:g}" if moved > allowed else ""


def _factor_reason(command: Command, argument: float, at: Situation) -> str:
    """The learning rate's argument multiplies what is in force, the coefficient's takes its place."""
    scales = command.kind is CommandKind.SCALE_LR
    in_force = at.in_force if at.in_force is not None else 1.0 if scales else at.user_value
    wanted = argument * in_force if scales and in_force is not None else argument
    low, high = _factors(command.kind, at.limits)
    base = 1.0 if scales else at.user_value
    if base is not None and not _between(wanted, low * base, high * base):
        return f"{wanted:g} is outside the client's bounds {low * base:g} … {high * base:g}"
    if in_force is None or in_force <= 0:
        return ""
    before = in_force if at.before_step is None or at.before_step <= 0 else at.before_step
    for now, most in ((in_force, at.limits.command_factor), (before, at.limits.step_factor)):
        if not _between(wanted, now / most, now * most):
            return f"{wanted:g} is more than a factor {most:g} from {now:g}"
    return ""


def _between(value: float, low: float, high: float) -> bool:
    return low * (1 - 1e-9) <= value <= high * (1 + 1e-9)


def _factors(kind: CommandKind, limits: ControlLimits) -> tuple[float, float]:
    if kind is CommandKind.SCALE_LR:
        return limits.lr_factor_low, limits.lr_factor_high
    return limits.kl_factor_low, limits.kl_factor_high


def _cooldown_reason(at: Situation) -> str:
    if at.last_change is None:
        return ""
    again = at.last_change + (at.limits.cooldown_steps if at.knob is None else at.knob.cool_down_steps)
    if not at.last_change <= at.step < again:
        return ""
    return f"changed at step {at.last_change}, not again before step {again}"


def _budget_reason(at: Situation) -> str:
    if at.changes < at.limits.changes:
        return ""
    return f"{at.changes} changes were made to this run already, which is as many as may be"
