"""Makes each hook of ours raise, in every Ray worker of a job: given to Ray as a job's own setup hook."""

from __future__ import annotations

import os
from typing import Any


def install() -> None:
    from rlvitals.integrations.openrlhf import controller, rank

    for name in ("_before_boundary", "_step_ends", "_before_advantages", "_after_advantages", "_reference"):
        setattr(controller.Controller, name, _raising(f"controller.{name}"))
    for name in ("_loss_seen", "_backward", "_ends", "take"):
        setattr(rank.Rank, name, _raising(f"rank.{name}"))


def _raising(name: str) -> Any:
    def fail(*_: Any, **__: Any) -> None:
        with open(os.environ["RAISING_CALLED"], "a") as lines:
            lines.write(f"{name}\n")
        raise RuntimeError(f"{name}, on purpose")

    return fail
