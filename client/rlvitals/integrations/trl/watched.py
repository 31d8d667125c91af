"""Which trainings are attached already, so that a callback beside `attach` begins no second run."""

from __future__ import annotations

import weakref
from typing import Any

_TRAINERS: weakref.WeakSet[Any] = weakref.WeakSet()


def add(trainer: Any) -> None:
    _TRAINERS.add(trainer)


def holds(args: Any) -> bool:
    """Whether the trainer of these arguments is attached: callbacks see no more of a trainer."""
    return any(getattr(trainer, "args", None) is args for trainer in list(_TRAINERS))
