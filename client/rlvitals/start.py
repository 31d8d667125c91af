"""The two ways in: `attach` a known trainer, or `init` a reporter for any loop."""

from __future__ import annotations

import importlib
import os
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

from rlvitals import notices, settings
from rlvitals.config import clean
from rlvitals.contract.report import RunInfo
from rlvitals.guard import Guard
from rlvitals.part import ALONE, Part
from rlvitals.reporter import Reporter
from rlvitals.settings import Mode
from rlvitals.verdict import ControlLimits

INTEGRATIONS = {"trl": "rlvitals.integrations.trl"}
"""Root package of a trainer's class → the module whose ``attach(trainer, **arguments of init)`` hooks it."""


def init(
    *,
    project: str | None = None,
    run: str | None = None,
    name: str = "",
    framework: str = "loop",
    model: str = "",
    config: object = None,
    tags: Sequence[str] = (),
    capabilities: Mapping[str, str] | None = None,
    url: str | None = None,
    token: str | None = None,
    spool: str | os.PathLike[str] | None = None,
    mode: str | Mode | None = None,
    limits: ControlLimits | None = None,
    part: Part = ALONE,
) -> Reporter:
    """Makes a `Reporter`. Arguments go before RLVITALS_* variables, those before a local service's token file.

    ``run`` is the run's id: the same id again is another attempt of the same run, unless ``part`` says that
    several processes write one attempt together. Never raises; a reporter that does nothing comes back if it
    cannot be made.
    """
    with Guard("rlvitals.init"):
        chosen = settings.load(
            project=project, run=run, name=name, tags=tuple(tags), url=url, token=token, spool=spool, mode=mode
        )
        info = RunInfo(
            id=chosen.run_id or _new_run_id(chosen.run_name or chosen.project),
            project=chosen.project,
            name=chosen.run_name,
            framework=framework[:64],
            model=model[:256],
            config=clean(config),
            tags=tuple(tag[:64] for tag in chosen.tags[:64]),
            capabilities=dict(capabilities or {}),
        )
        return Reporter(chosen, info, limits=limits, part=part)
    return Reporter.disabled()


def attach(trainer: Any, **arguments: Any) -> Reporter:
    """Hooks a trainer (TRL's so far) and returns its `Reporter`; takes the arguments of `init`.

    Never raises: what cannot be hooked is told once and gives a reporter that does nothing.
    """
    with Guard("rlvitals.attach"):
        roots = [kind.__module__.partition(".")[0] for kind in type(trainer).__mro__]
        module = next((INTEGRATIONS[root] for root in roots if root in INTEGRATIONS), None)
        if module is None:
            known = ", ".join(sorted(INTEGRATIONS))
            notices.once(
                "attach", f"no integration for {type(trainer).__name__}; there are: {known}. See rlvitals.init"
            )
            return Reporter.disabled()
        reporter: Reporter = importlib.import_module(module).attach(trainer, **arguments)
        return reporter
    return Reporter.disabled()


def _new_run_id(base: str) -> str:
    slug = re.sub(r"[^A-Za-z0-9._-]+", "-", base).strip("-.")[:64] or "run"
    return f"{slug}-{time.strftime('%Y%m%d-%H%M%S')}-{os.urandom(2).hex()}"
