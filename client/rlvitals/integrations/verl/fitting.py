"""Around a trainer's ``fit``: how a run ends. What it raises is raised, before and after ours."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

from rlvitals.contract.report import Phase
from rlvitals.guard import Guard
from rlvitals.integrations.verl.places import hooks
from rlvitals.integrations.verl.session import known_session

FIT = "fit"


def patch_legacy(module: ModuleType) -> None:
    """Wraps ``RayPPOTrainer.fit``: V0's loop tells its end nowhere else if it breaks off."""
    watch_fit(module, "RayPPOTrainer", begin=lambda trainer: None)


def patch_agent(module: ModuleType) -> None:
    """Wraps ``RayAgentTrainer.fit`` of Agent-R1, which has a loop of its own."""
    watch_fit(module, "RayAgentTrainer", begin=lambda trainer: None)


def watch_fit(module: ModuleType, name: str, *, begin: Callable[[Any], None]) -> None:
    """Wraps ``module.<name>.fit``; ``begin`` is called with the trainer before it."""
    trainer: Any = getattr(module, name, None)
    patched = trainer is not None and hasattr(trainer, "fit")
    if patched:
        trainer.fit = _fitted(trainer.fit, begin, f"{FIT} of {name}")
    why = "" if patched else "this version has no such trainer"
    target = f"{module.__name__}.{name}.fit"
    hooks().add(f"{FIT} of {name}", target, "how a run ends", patched=patched, why=why, optional=True)


def _fitted(original: Callable[..., Any], begin: Callable[[Any], None], hook: str) -> Callable[..., Any]:
    @functools.wraps(original)
    def fit(trainer: Any, *arguments: Any, **options: Any) -> Any:
        with Guard("beginning a run"):
            hooks().saw(hook)
            begin(trainer)
        try:
            result = original(trainer, *arguments, **options)
        except BaseException:
            _end(trainer, Phase.FAILED)
            raise
        _end(trainer, Phase.FINISHED)
        return result

    return fit


def _end(trainer: Any, phase: Phase) -> None:
    with Guard("ending a run"):
        session = known_session(trainer)
        if session is not None:
            session.close(phase)
