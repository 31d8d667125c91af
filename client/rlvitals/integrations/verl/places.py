"""Where this process has taken hold of verl: entered while its modules are imported, before there is a trainer."""

from __future__ import annotations

from rlvitals.integrations.hooks import HookTable

_HOOKS = HookTable("verl")


def hooks() -> HookTable:
    """The table of this process."""
    return _HOOKS
