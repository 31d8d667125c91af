"""verl before 0.6 has no plug-ins of its own: Ray loads ours, ``RAY_RUNTIME_ENV_HOOK=<this module>.add_setup``.

Ray calls `add_setup` in the process that calls ``ray.init``; what it adds runs first in every worker process of
the job, the driver's among them. Nothing here may raise: Ray would start no worker.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping
from typing import Any

from rlvitals import notices
from rlvitals.guard import outcome

SETUP = "worker_process_setup_hook"
NEXT = "RLVITALS_RAY_NEXT_HOOK"
"""The environment variable that names a hook of the user's own, which is called first."""
FORWARDED = (
    "RLVITALS_MODE",
    "RLVITALS_URL",
    "RLVITALS_RUN_ID",
    "RLVITALS_RUN_NAME",
    "RLVITALS_PROJECT",
    "RLVITALS_TEXTS",
)
"""What workers on other machines need to know. Never a token: Ray's dashboard shows runtime environments."""
_OF_A_JOB = "RAY_JOB_CONFIG_JSON_ENV_VAR"


def add_setup(runtime_env: Any) -> Any:
    """The runtime environment with our set-up added to the user's own. What the user's hook raises is raised."""
    runtime_env = _users_hook(runtime_env)
    found, error = outcome(_added, runtime_env)
    if error:
        notices.once("ray:hook", f"Ray's workers are not watched: {error}")
    return runtime_env if error else found


def set_up_worker() -> None:
    """In each worker process, before anything else is imported."""
    from rlvitals.integrations.verl import plugin

    plugin.install()


def _users_hook(runtime_env: Any) -> Any:
    name = os.environ.get(NEXT, "")
    return _load(name)(runtime_env) if name else runtime_env


def _added(runtime_env: Any) -> Any:
    told = dict(runtime_env or {})
    if SETUP in os.environ.get(_OF_A_JOB, ""):
        what = "this job was submitted with a set-up hook for its workers, which Ray lets nobody add to"
        notices.once("ray:job", what)
        return runtime_env
    told[SETUP] = chained(told.get(SETUP))
    known = {name: os.environ[name] for name in FORWARDED if name in os.environ}
    if known:
        told["env_vars"] = {**known, **(told.get("env_vars") or {})}
    return told


def chained(users: Callable[[], object] | str | None) -> Callable[[], None]:
    """The user's own set-up, then ours. It travels by value, so that a node without this package does no harm."""

    def set_up() -> None:
        import contextlib
        import importlib

        if isinstance(users, str):
            module, _, name = users.rpartition(".")
            getattr(importlib.import_module(module), name)()
        elif users is not None:
            users()
        # a node may lack this package, the guard among it
        with contextlib.suppress(Exception):
            importlib.import_module("rlvitals.integrations.verl.ray_hook").set_up_worker()

    return set_up


def _load(name: str) -> Callable[..., Any]:
    module, _, function = name.rpartition(".")
    found: Callable[..., Any] = getattr(importlib.import_module(module), function)
    return found


def is_named(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether Ray is told to call `add_setup`."""
    return environment.get("RAY_RUNTIME_ENV_HOOK", "") == f"{__name__}.add_setup"
