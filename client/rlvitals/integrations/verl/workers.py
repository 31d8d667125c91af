"""On verl's workers: the loss that is really computed, seen where old and new log-probs meet."""

from __future__ import annotations

from types import ModuleType


def patch_losses(module: ModuleType) -> None:
    """Wraps ``verl.workers.utils.losses.ppo_loss``."""
