"""What this integration was tried with, and where it would take hold of the OpenRLHF that is installed here."""

from __future__ import annotations

import importlib
from typing import Any

from rlvitals.guard import outcome
from rlvitals.integrations.hooks import HookTable
from rlvitals.integrations.openrlhf.arguments import installed_version
from rlvitals.integrations.openrlhf.places import PLACES, Place

VERSIONS = ("0.11.2",)
"""Releases whose own command line was run to its end with us."""
CHECKED = ("0.9.1", "0.9.4", "0.9.10", "0.10.1", "0.10.4", "0.11.0")
"""Releases in whose source the names and signatures that we rely on were found."""


def hooks() -> HookTable:
    """The places in the installed OpenRLHF, found without training; imports its modules, which takes seconds."""
    table = HookTable("openrlhf", installed_version())
    for place in PLACES:
        owner, error = outcome(_owner, place)
        found = getattr(owner, place.attribute, None) is not None
        why = "" if found else error or f"this release has no {place.target}"
        table.add(place.name, place.target, place.gives, patched=found, why=why, optional=place.optional)
    return table


def _owner(place: Place) -> Any:
    module = importlib.import_module(place.module)
    if not place.owner:
        return module
    owner = getattr(module, place.owner)
    metadata = getattr(owner, "__ray_metadata__", None)
    return owner if metadata is None else metadata.modified_class
