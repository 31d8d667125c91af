"""The few completions of a step that people may read."""

from __future__ import annotations

from dataclasses import dataclass

from rlvitals.contract.metrics import METRICS, Family

RESERVOIR, WORST_UTF8, LONGEST = 2, 2, 1
"""How many of each kind are kept."""
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
