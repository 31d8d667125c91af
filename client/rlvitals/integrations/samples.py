"""The few completions of a step that people may read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from rlvitals.contract.metrics import METRICS, Family
from rlvitals.contract.report import TokenDetail

RESERVOIR, WORST_UTF8, LONGEST = 2, 2, 1
"""How many of each kind are kept; and the one with the largest ratio, which is known when the step is over."""
RATIOS = ("ratio.max", "ratio.rollout_max")
"""Whose extremes name a completion that is worth reading; the first that names one counts."""
GENERATED = (
    *(m.name for m in METRICS if m.family in (Family.TEXT, Family.LENGTH, Family.REWARD)),
    "numerics.nonfinite_rewards",
)
"""What is told by a generation and not by the loss."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One completion to keep, as arguments of `Reporter.text`."""

    sample: int
    completion: str
    prompt: str
    token_ids: tuple[int, ...]
    reward: float | None
    truncated: bool
    invalid_utf8: int | None
    why: str
    tokens: TokenDetail | None = None


Shelf: TypeAlias = Callable[[int, str], "Sample | None"]
"""The completion of a number in the step's batch, with the reason why it is kept; None where it lies elsewhere."""


def of_several(shelves: Sequence[Shelf]) -> Shelf | None:
    """One shelf of a step's rollouts, which number their completions one after the other; None for none."""

    def take(number: int, why: str) -> Sample | None:
        found = (shelf(number, why) for shelf in shelves)
        return next((sample for sample in found if sample is not None), None)

    return take if shelves else None
