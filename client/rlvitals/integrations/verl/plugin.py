"""What is patched in verl, and when: after a module was executed, in whichever process of a job it was.

Nothing here imports verl or torch, and nothing raises: a plug-in that fails would fail every worker of a job.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from types import ModuleType

from rlvitals import settings
from rlvitals.guard import Guard
from rlvitals.integrations.verl.finder import PatchingFinder
from rlvitals.settings import Mode

PATCHES: Mapping[str, str] = {
    "verl.utils.tracking": "rlvitals.integrations.verl.v0:patch_tracking",
    "verl.trainer.ppo.v1.trainer_base": "rlvitals.integrations.verl.v1:patch_trainer",
    "verl.trainer.ppo.ray_trainer": "rlvitals.integrations.verl.fitting:patch_legacy",
    "agent_r1.trainer.ppo.ray_trainer": "rlvitals.integrations.verl.fitting:patch_agent",
    "agent_r1.src.agent_ray_trainer": "rlvitals.integrations.verl.fitting:patch_agent",
    "verl.trainer.ppo.core_algos": "rlvitals.integrations.verl.legacy_losses:patch_core",
    "agent_r1.trainer.ppo.core_algos": "rlvitals.integrations.verl.legacy_losses:patch_core",
    "verl.workers.utils.losses": "rlvitals.integrations.verl.workers:patch_losses",
    "verl.workers.engine.fsdp.transformer_impl": "rlvitals.integrations.verl.workers:patch_engine",
}
"""Module of verl → ``module:function`` of ours that takes the executed module."""


def install(patches: Mapping[str, str] = PATCHES) -> bool:
    """Installs the finder, once a process; patches at once what was imported before. False where switched off."""
    with Guard("installing the verl plug-in"):
        if settings.load().mode is Mode.DISABLED:
            return False
        if any(isinstance(finder, PatchingFinder) for finder in sys.meta_path):
            return True
        calls = {name: _patch(target) for name, target in patches.items()}
        sys.meta_path.insert(0, PatchingFinder(calls))
        for name, call in calls.items():
            if name in sys.modules:
                with Guard(f"patching {name}"):
                    call(sys.modules[name])
        return True
    return False


def _patch(target: str) -> Callable[[ModuleType], None]:
    """Imports ours only when the module of verl is there, in processes that need it."""

    def patch(module: ModuleType) -> None:
        ours, _, function = target.partition(":")
        getattr(importlib.import_module(ours), function)(module)

    return patch
