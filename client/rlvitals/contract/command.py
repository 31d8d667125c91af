"""What people and policies ask of a training job, and what became of it."""

from __future__ import annotations

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


ARGUMENT_KINDS = frozenset({CommandKind.SET_KL_COEF, CommandKind.SCALE_LR})
"""Kinds that need a finite, positive ``argument`` inside ``bounds``."""


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
    OBSERVE = "observe"
    APPROVE = "approve"
    AUTO = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Closed interval that both ends enforce."""

    low: float
    high: float

    def allow(self, value: float) -> bool:
        """False for NaN as well, since no comparison with it holds."""
        return self.low <= value <= self.high


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One request to one run. ``id`` makes it exactly-once; after ``expires_at`` nobody may apply it.

    ``argument``: the new KL coefficient, or the factor on the learning rate; for ``pause`` the longest
    allowed pause in seconds; None for the other kinds.
    """

    id: str
    kind: CommandKind
    expires_at: datetime
    argument: float | None = None
    bounds: Bounds | None = None
    who: str = ""
    why: str = ""


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
