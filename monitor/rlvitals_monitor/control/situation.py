"""What a decision on a command depends on, and the names of refusals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from rlvitals.contract.command import CommandState, Knob
from rlvitals.contract.report import Json
from rlvitals.contract.view import CommandView

OPEN = frozenset({CommandState.PROPOSED, CommandState.PENDING, CommandState.DELIVERED})


class Why(str, Enum):
    """The name of a refusal."""

    NOTHING_PROPOSED = "nothing proposed"
    NOT_FIRING = "not firing"
    RUN_OVER = "run over"
    EXPIRED = "expired"
    INCAPABLE = "incapable"
    ARGUMENT = "argument"
    NO_BASELINE = "no baseline"
    BOUNDS = "bounds"
    CHANGE = "too large a change"
    UNCHANGED = "unchanged"
    ALREADY_OPEN = "already open"
    COOL_DOWN = "cool-down"
    BUDGET = "budget"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    why: Why
    detail: str

    def __str__(self) -> str:
        return f"{self.why.value}: {self.detail}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What is known of the run.

    ``history`` is its commands of the kind in question (for a knob: of that knob), oldest first; ``changes`` how
    many commands of any kind changed a number of this run so far, whoever asked.
    """

    capabilities: Mapping[str, str]
    config: Json
    project: str = ""
    over: bool = False
    step: int | None = None
    history: tuple[CommandView, ...] = ()
    knobs: Mapping[str, Knob] = field(default_factory=dict)
    changes: int = 0
