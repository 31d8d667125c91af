"""How far a command may go: pure arithmetic on the user's own value.

Automatic changes stay within `Limits.automatic_factor` of the value that the user started with, never of the value
that an earlier change left behind, so that many small steps cannot wander off. A person may go further, within the
wider factor. No bound reaches zero, so no change can cross it.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from rlvitals.contract.command import ARGUMENT_KINDS, Bounds, CommandKind

LEAST_PAUSE_S = 1.0
_LEAST = math.ulp(0.0)
_FACTORS = (
    "automatic_factor",
    "approved_kl_down",
    "approved_kl_up",
    "approved_lr_down",
    "approved_lr_up",
    "command_factor",
    "step_factor",
)
_GRAVE = ARGUMENT_KINDS | {CommandKind.STOP}


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What the operator allows. Factors are on the user's own value.

    A person may go a long way down and a short way up: too small a penalty shows in the charts for hundreds of
    steps, too large a one ends a run in one. ``command_factor`` is the most that one command may move the value in
    force by, ``step_factor`` all commands at one step, whoever asks; ``rest_steps`` lie between two changes of one
    number, ``changes`` is how many a run takes in all. The client's own limits are the same by default.

    Commands of ``two_person_kinds``, and those that change or end a run of ``two_person_projects``, need two
    different named people, also where the policy is ``auto``.
    """

    automatic_factor: float = 2.0
    approved_kl_down: float = 1000.0
    approved_kl_up: float = 10.0
    approved_lr_down: float = 100.0
    approved_lr_up: float = 2.0
    command_factor: float = 10.0
    step_factor: float = 10.0
    rest_steps: int = 3
    changes: int = 200
    longest_pause_s: float = 1800.0
    cool_down_steps: int = 50
    cool_down_s: float = 300.0
    automatic_changes: int = 5
    proposals: int = 50
    proposal_open_s: float = 4 * 3600.0
    delivery_open_s: float = 3600.0
    two_person_kinds: frozenset[CommandKind] = frozenset()
    two_person_projects: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        for name in _FACTORS:
            if not 1.0 <= getattr(self, name) < math.inf:
                raise ValueError(f"{name}: expected a finite factor of at least 1, got {getattr(self, name)}")
        if not LEAST_PAUSE_S <= self.longest_pause_s < math.inf:
            raise ValueError(f"longest_pause_s: expected at least {LEAST_PAUSE_S} s, got {self.longest_pause_s}")

    def persons(self, kind: CommandKind, project: str) -> int:
        """How many must approve. Where a project asks for two, one still may pause, resume and save."""
        asked = kind in self.two_person_kinds or (project in self.two_person_projects and kind in _GRAVE)
        return 2 if asked else 1


def users_value(kind: CommandKind, config: Mapping[str, object]) -> float | None:
    """What ``kind`` changes, as the user set it; None where that is unknown, not finite or not positive.

    A learning-rate command's argument is already a factor on the user's own schedule, so its base is 1.
    """
    if kind is CommandKind.SCALE_LR:
        return 1.0
    value = config.get("kl_coef") if kind is CommandKind.SET_KL_COEF else None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if 0.0 < value <= sys.float_info.max else None


def bounds_for(
    kind: CommandKind, config: Mapping[str, object], limits: Limits, *, automatic: bool
) -> Bounds | None:
    """The closed interval for the argument of ``kind``; None where it takes none or has no known base."""
    if kind is CommandKind.PAUSE:
        return Bounds(low=LEAST_PAUSE_S, high=limits.longest_pause_s)
    base = users_value(kind, config)
    if kind not in ARGUMENT_KINDS or base is None:
        return None
    down, up = _factors(kind, limits, automatic=automatic)
    value, least, most = (Decimal(repr(number)) for number in (base, down, up))
    # As people reckon: ten times 0.0003 is 0.003, which the product of the floats is not.
    return Bounds(low=max(float(value / least), _LEAST), high=min(float(value * most), sys.float_info.max))


def _factors(kind: CommandKind, limits: Limits, *, automatic: bool) -> tuple[float, float]:
    narrow = limits.automatic_factor
    if automatic:
        return narrow, narrow
    if kind is CommandKind.SCALE_LR:
        return max(limits.approved_lr_down, narrow), max(limits.approved_lr_up, narrow)
    return max(limits.approved_kl_down, narrow), max(limits.approved_kl_up, narrow)
