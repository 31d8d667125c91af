"""verl's V1 trainer (0.9, the default): the batch in TransferQueue, seen where its metrics are computed."""

from __future__ import annotations

from types import ModuleType


def patch_trainer(module: ModuleType) -> None:
    """Wraps ``verl.trainer.ppo.v1.trainer_base.PPOTrainer``."""
