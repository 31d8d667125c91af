"""Evaluation metrics have a cadence of their own: a record of nothing else is no training step.

It moves no step counter, no clock of progress and no rule; its points are stored and drawn as all others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

PREFIXES = (
    *("eval_", "eval/", "eval-", "eval.", "evals/", "evaluation/"),
    *("val/", "val-", "val_", "validation/", "test/"),
)
"""How trainers begin the names of what an evaluation measured: TRL, OpenRLHF and slime, verl, Lightning."""
NEUTRAL = frozenset({"epoch", "progress.epoch", "step", "global_step", "training/epoch", "training/global_step"})
"""Names that stand beside both kinds; our own (``rlvitals.…``) do so too."""

_BEGIN = frozenset(prefix[0] for prefix in PREFIXES)
_KNOWN_MAX = 1024
_known: set[str] = set()
"""Names that were found to be of training: a run's steps begin with one of a few."""
T = TypeVar("T")


def is_evaluated(name: str) -> bool:
    """Whether a name says that an evaluation measured it."""
    return name.startswith(PREFIXES)


def is_evaluation(names: Iterable[str]) -> bool:
    """Whether a record holds something that an evaluation measured, and nothing of training."""
    told = False
    for name in names:
        # asked at each step of a run: its first name settles it nearly always
        if name in _known:
            return False
        if name[:1] in _BEGIN and name.startswith(PREFIXES):
            told = True
        elif name not in NEUTRAL and name[:9] != "rlvitals.":
            if len(_known) < _KNOWN_MAX:
                _known.add(name)
            return False
    return told


def as_evaluated(values: Mapping[str, T]) -> dict[str, T]:
    """The same values in the same order, under names that say so: ``eval/<name>`` where a name does not."""
    return {
        name if is_evaluated(name) or name in NEUTRAL else f"eval/{name}": value for name, value in values.items()
    }
