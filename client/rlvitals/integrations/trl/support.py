"""Which releases of TRL were tried, and what would be taken hold of in the one that is installed here."""

from __future__ import annotations

import importlib
from typing import Any

from rlvitals.guard import outcome
from rlvitals.integrations.hooks import HookTable
from rlvitals.integrations.trl import places

VERSIONS = ("0.15.2", "0.17.0", "0.20.0", "0.23.1", "0.29.1", "1.7.0", "1.13.0", "1.16.0")
"""GRPO in each; RLOO in those from 0.23 on."""
NOT_INSTALLED = "TRL is not installed in this environment"


def hooks() -> HookTable:
    """Looks at GRPOTrainer without training; a place that is there counts as patched. Imports TRL."""
    table = HookTable("trl", places.release())
    trainer, why = outcome(_grpo) if table.version else (None, NOT_INSTALLED)
    for place in places.PLACES:
        kind = "GRPOTrainer"
        method = "" if trainer is None else _method(place, trainer)
        reason = "" if method else why or places.why_absent(place, kind, table.version)
        table.add(
            place.name,
            place.target(kind, method or place.methods[0]),
            place.gives,
            patched=bool(method),
            why=reason,
            optional=place.optional,
        )
    places.events(table)
    if trainer is None:
        for hook in table:
            hook.patched, hook.why = False, hook.why or why
    return table


def _grpo() -> Any:
    return importlib.import_module("trl").GRPOTrainer


def _method(place: places.Place, trainer: Any) -> str:
    return place.method(importlib.import_module("accelerate").Accelerator if place.of_accelerator else trainer)
