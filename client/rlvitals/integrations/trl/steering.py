"""What a command does to a TRL trainer. Runs on all ranks at the same step boundary, with the same argument."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rlvitals.contract.command import CommandKind
from rlvitals.integrations.steering import LEAST_COEFFICIENT, Refused, scale_learning_rate
from rlvitals.integrations.trl import facts


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheel:
    """All that a command may act on: the trainer, its optimizer and scheduler, and the flags of this event.

    ``trainer`` is None where only its callbacks are known.
    """

    trainer: Any
    optimizer: Any
    scheduler: Any
    flags: Any


def apply(kind: CommandKind, argument: float, wheel: Wheel) -> tuple[float | None, float | None]:
    """Carries it out and returns the value before and after, read back from the trainer. Raises `Refused`."""
    if kind is CommandKind.SET_KL_COEF:
        return set_kl_coef(wheel.trainer, argument)
    if kind is CommandKind.SCALE_LR:
        return scale_learning_rate(wheel.optimizer, wheel.scheduler, argument)
    if kind in (CommandKind.CHECKPOINT, CommandKind.STOP):
        wheel.flags.should_save = True
    if kind is CommandKind.STOP:
        wheel.flags.should_training_stop = True
    return None, None


def set_kl_coef(trainer: Any, value: float) -> tuple[float, float]:
    """Sets the coefficient, never to 0 and never from 0.

    It acts from the next micro-batch on where the KL is in the loss, from the next generation where in the reward.
    """
    if trainer is None:
        raise Refused(facts.NO_TRAINER)
    reason, place = facts.no_kl_control(trainer), facts.coefficient_place(trainer)
    if reason or place is None:
        raise Refused(reason or facts.NO_COEFFICIENT)
    before = float(getattr(*place))
    setattr(*place, max(value, LEAST_COEFFICIENT))
    fused = facts.fused_loss(trainer)
    if fused is not None:
        fused.beta = float(getattr(*place))
    return before, float(getattr(*place))
