"""What a command does to a TRL trainer. Runs on all ranks at the same step boundary, with the same argument."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rlvitals.contract.command import CommandKind
from rlvitals.integrations.trl import facts

LEAST_COEFFICIENT = 1e-8
"""Never 0: at 0 TRL stops computing reference log-probs, and the batches already made would lack them later."""


class Refused(Exception):
    """The trainer cannot do it; the message is the reason that people read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheel:
    """All that a command may act on: the trainer, its optimizer and scheduler, and the flags of this event."""

    trainer: Any
    optimizer: Any
    scheduler: Any
    flags: Any


def apply(kind: CommandKind, argument: float, wheel: Wheel) -> tuple[float | None, float | None]:
    """Carries it out and returns the value before and after, read back from the trainer. Raises `Refused`."""
    if kind is CommandKind.SET_KL_COEF:
        return set_kl_coef(wheel.trainer, argument)
    if kind is CommandKind.SCALE_LR:
        return _scale_learning_rate(wheel, argument)
    if kind in (CommandKind.CHECKPOINT, CommandKind.STOP):
        wheel.flags.should_save = True
    if kind is CommandKind.STOP:
        wheel.flags.should_training_stop = True
    return None, None


def set_kl_coef(trainer: Any, value: float) -> tuple[float, float]:
    """Sets the coefficient, never to 0 and never from 0. Takes effect with the next micro-batch."""
    reason = facts.no_kl_control(trainer)
    if reason:
        raise Refused(reason)
    before = float(trainer.beta)
    trainer.beta = max(value, LEAST_COEFFICIENT)
    fused: Any = getattr(trainer, "liger_grpo_loss", None)
    if fused is not None:
        fused.beta = trainer.beta  # older TRL copied it when the trainer was made
    return before, float(trainer.beta)


def _scale_learning_rate(wheel: Wheel, factor: float) -> tuple[float, float]:
    """Scales the rate in force and the schedule's base, so that the next scheduler step does not undo it."""
    if wheel.optimizer is None:
        raise Refused("the trainer showed no optimizer at this step")
    before = float(wheel.optimizer.param_groups[0]["lr"])
    for group in wheel.optimizer.param_groups:
        group["lr"] *= factor
        if "initial_lr" in group:
            group["initial_lr"] *= factor
    scheduler = getattr(wheel.scheduler, "scheduler", wheel.scheduler)
    if hasattr(scheduler, "base_lrs"):
        scheduler.base_lrs = [rate * factor for rate in scheduler.base_lrs]
    return before, float(wheel.optimizer.param_groups[0]["lr"])
