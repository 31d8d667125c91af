"""What commands do to any trainer alike, and how one says that it cannot."""

from __future__ import annotations

import hashlib
import math
from typing import Any

from rlvitals.contract.command import Command, CommandKind
from rlvitals.knobs import Knobs

KINDS = tuple(CommandKind)
Action = tuple[int, float]
"""What ranks tell each other of a command: the number of its kind, or beyond these of its knob; the argument."""
LEAST_COEFFICIENT = 1e-8
"""Never 0: at 0 trainers stop computing reference log-probs, and batches already made would lack them later."""


class Refused(Exception):
    """The trainer cannot do it; the message is the reason that people read."""


def action_of(command: Command) -> Action:
    """An argument that there is not is NaN."""
    argument = math.nan if command.argument is None else command.argument
    if command.kind is CommandKind.SET_KNOB:
        return len(KINDS) + _number(command.knob), argument
    return KINDS.index(command.kind), argument


def kind_of(action: Action) -> CommandKind:
    return KINDS[action[0]] if action[0] < len(KINDS) else CommandKind.SET_KNOB


def turn_knob(knobs: Knobs, action: Action) -> tuple[float | None, float | None]:
    """Value before and after. Raises `Refused`."""
    number, value = action
    name = next((name for name in knobs.names if len(KINDS) + _number(name) == number), "")
    turned = knobs.turn(name, value)
    if turned.fault:
        raise Refused(turned.fault)
    return turned.before, turned.after


def _number(name: str) -> int:
    """48 bits, which a double holds exactly; the order in which ranks registered their knobs does not matter."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:6], "big")


def scale_learning_rate(optimizer: Any, scheduler: Any, factor: float) -> tuple[float, float]:
    """Scales the rate in force and the schedule's base, so that the next scheduler step does not undo it."""
    if optimizer is None:
        raise Refused("the trainer showed no optimizer at this step")
    before = float(optimizer.param_groups[0]["lr"])
    for group in optimizer.param_groups:
        group["lr"] *= factor
        if "initial_lr" in group:
            group["initial_lr"] *= factor
    core = getattr(scheduler, "scheduler", scheduler)
    if hasattr(core, "base_lrs"):
        core.base_lrs = [rate * factor for rate in core.base_lrs]
    return before, float(optimizer.param_groups[0]["lr"])
