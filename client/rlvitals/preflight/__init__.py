"""Checks before the first step: tokenizer, template, model, data and settings, each with evidence and a fix.

``rlvitals.preflight(trainer)`` or ``rlvitals.preflight.check(tokenizer=…, model=…, …)`` in a job; ``rlvitals
check`` on a command line.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from rlvitals.preflight.finding import Finding, Report, Verdict
from rlvitals.preflight.inspection import check

__all__ = ["Finding", "Report", "Verdict", "check"]


class _Preflight(ModuleType):
    """The module is the call: a submodule and a function of one name cannot both be the package's attribute."""

    def __call__(self, trainer: Any = None, /, **given: Any) -> Report:
        return check(trainer, **given)


sys.modules[__name__].__class__ = _Preflight
