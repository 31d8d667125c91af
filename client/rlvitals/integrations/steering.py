"""What commands do to any trainer alike, and how one says that it cannot."""

from __future__ import annotations

from typing import Any

LEAST_COEFFICIENT = 1e-8
"""Never 0: at 0 trainers stop computing reference log-probs, and batches already made would lack them later."""


class Refused(Exception):
    """The trainer cannot do it; the message is the reason that people read."""


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
