"""What people and policies ask of a training job, and what became of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from enum import Enum


class CommandKind(str, Enum):
    PAUSE = "pause"
    RESUME = "resume"
    STOP = "stop"
    CHECKPOINT = "checkpoint"
    SET_KL_COEF = "set_kl_coef"
    SCALE_LR = "scale_lr"
    SET_KNOB = "set_knob"


ARGUMENT_KINDS = frozenset({CommandKind.SET_KL_COEF, CommandKind.SCALE_LR, CommandKind.SET_KNOB})
"""Kinds that change a number: they need a finite ``argument`` inside ``bounds``, above 0 unless it is a knob's."""


class CommandState(str, Enum):
    """``proposed`` waits for a person; ``pending`` waits for the trainer; the rest are ends, but ``delivered``."""

    OBSERVED = "observed"
    PROPOSED = "proposed"
    PENDING = "pending"
    DELIVERED = "delivered"
    APPLIED = "applied"
    REFUSED = "refused"
    DENIED = "denied"
    EXPIRED = "expired"


class Policy(str, Enum):
    """From the most to the least cautious."""

    OBSERVE = "observe"
    APPROVE = "approve"
    AUTO = "auto"

    @property
    def rank(self) -> int:
        return ("observe", "approve", "auto").index(self.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Closed interval that both ends enforce."""

    low: float
    high: float

    def allow(self, value: float) -> bool:
        """False for NaN as well, since no comparison with it holds."""
        return self.low <= value <= self.high


@dataclass(frozen=True, slots=True, kw_only=True)
class Knob:
    """A setting of the user's own that may be changed while it trains, within a closed interval.

    ``value`` is the user's own, None where it is not known. One command changes it by at most ``max_change``
    (None: as far as the interval goes), and no other does for ``cool_down_steps``.
    """

    low: float
    high: float
    value: float | None = None
    max_change: float | None = None
    cool_down_steps: int = 3

    def fault(self) -> str:
        """What is wrong with it, "" if nothing is. NaN and infinities are no bounds."""
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            return f"expected finite bounds, low below high, got {self.low} … {self.high}"
        if self.value is not None and not self.low <= self.value <= self.high:
            return f"expected a value within {self.low:g} … {self.high:g}, got {self.value}"
        if self.max_change is not None and not 0.0 < self.max_change < math.inf:
            return f"expected a finite max_change above 0, got {self.max_change}"
        return "" if self.cool_down_steps >= 0 else f"expected cool_down_steps ≥ 0, got {self.cool_down_steps}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One request to one run. ``id`` makes it exactly-once; after ``expires_at`` nobody may apply it.

    ``argument``: the new KL coefficient, the factor on the learning rate, or the new value of ``knob``; for
    ``pause`` the longest allowed pause in seconds; None for the other kinds. ``valid_s`` are the seconds that were
    left until ``expires_at`` when this was handed out: the trainer counts them by its own clock, which need not
    agree with the service's.
    """

    id: str
    kind: CommandKind
    expires_at: datetime
    argument: float | None = None
    bounds: Bounds | None = None
    who: str = ""
    why: str = ""
    knob: str = ""
    valid_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """``before`` and ``after`` are read back from the trainer. ``seq`` numbers the record in the journal."""

    seq: int
    command_id: str
    state: CommandState
    step: int | None = None
    time_s: float = 0.0
    reason: str = ""
    before: float | None = None
    after: float | None = None
