"""Puts one wrapper around ``fit`` of OpenRLHF's controllers, in the process that makes them.

Ray copies a class's methods when it is decorated, so what counts is the class behind the decorator. It travels to
the controller by value: the wrapper therefore names nothing of ours, and where we are not installed the training
runs as if it were not there. All else is hooked from inside the controller, on live objects (`controller`).
"""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Callable, Mapping
from typing import Any

from rlvitals import notices
from rlvitals.guard import Guard

CONTROLLERS = (
    ("openrlhf.trainer.ppo_trainer", "PPOTrainer"),
    ("openrlhf.trainer.ppo_trainer_async", "TrainingActor"),
)
ASYNC = ("openrlhf.trainer.ppo_trainer_async", "PPOTrainerAsync")
GENERATOR = ("openrlhf.trainer.ppo_trainer_async", "GenerateSamplesActor")
_MARK = "__rlvitals__"


def patch(environment: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Patches what this OpenRLHF has and returns the names; says once why, where there is nothing. Never raises.

    ``environment`` is what the controller takes over where its own has no such variable (default: our own
    ``RLVITALS_*`` of this process).
    """
    given = dict(environment) if environment is not None else settings()
    done = []
    for module, name in CONTROLLERS:
        with Guard(f"patching {name}"):
            done += _patch_class(module, name, "fit", functools.partial(_watched, given=given))
    with Guard("patching the asynchronous trainer"):
        done += _patch_class(*ASYNC, "__init__", functools.partial(_introduced, given=given))
    with Guard("patching the asynchronous generator"):
        done += _patch_class(*GENERATOR, "fit", _left)
    if not done:
        notices.once("openrlhf:patch", "OpenRLHF's trainers were not found: this run is not monitored")
    return tuple(done)


def settings() -> dict[str, str]:
    """What the controller, which may be on another machine, must know of us."""
    return {name: value for name, value in os.environ.items() if name.startswith("RLVITALS_")}


def behind(module: str, name: str) -> Any:
    """The class behind Ray's decorator, None where this release has none. Imports the trainer."""
    try:
        decorated = getattr(importlib.import_module(module), name, None)
    except ImportError as error:
        notices.once(f"openrlhf:{module}", f"{module} cannot be imported: {error}")
        return None
    metadata = getattr(decorated, "__ray_metadata__", None)
    return getattr(metadata, "modified_class", None)


def _patch_class(module: str, name: str, method: str, wrapper: Callable[[Any], Any]) -> list[str]:
    owner = behind(module, name)
    original = None if owner is None else getattr(owner, method, None)
    if original is None:
        return []
    if not getattr(original, _MARK, False):
        hooked = wrapper(original)
        setattr(hooked, _MARK, True)
        setattr(owner, method, hooked)
    return [f"{name}.{method}"]


def _watched(original: Any, *, given: Mapping[str, str]) -> Any:
    @functools.wraps(original)
    def fit(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            from rlvitals.integrations.openrlhf.controller import watching
        except ImportError as error:
            import logging

            logging.getLogger("rlvitals").warning("rlvitals: this run is not monitored: %s", error)
            return original(self, *args, **kwargs)
        return watching(self, given, functools.partial(original, self, *args, **kwargs))

    return fit


def _left(original: Any) -> Any:
    @functools.wraps(original)
    def fit(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            from rlvitals.integrations.openrlhf.generator import leaving
        except ImportError:
            return original(self, *args, **kwargs)
        return leaving(self, functools.partial(original, self, *args, **kwargs))

    return fit


def _introduced(original: Any, *, given: Mapping[str, str]) -> Any:
    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            from rlvitals.integrations.openrlhf.generator import introduce
        except ImportError:
            original(self, *args, **kwargs)
            return
        introduce(given)
        original(self, *args, **kwargs)
        introduce(given, self)

    return __init__
