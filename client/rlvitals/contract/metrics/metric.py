"""What is known about a metric."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Family(str, Enum):
    """One block of charts on the run page, in the order of looking."""

    TEXT = "text"
    LENGTH = "length"
    REWARD = "reward"
    COMPONENT = "component"
    KL = "kl"
    RATIO = "ratio"
    CORRECTION = "correction"
    POLICY = "policy"
    CRITIC = "critic"
    GRADIENT = "gradient"
    NUMERICS = "numerics"
    GUARD = "guard"
    PROGRESS = "progress"
    SELF = "rlvitals"


class Merge(str, Enum):
    """How values of one step from several writers combine. ``TALLY`` ratios are finished from merged Tallies."""

    SUM = "sum"
    MIN = "min"
    MAX = "max"
    LAST = "last"
    TALLY = "tally"


class Worse(str, Enum):
    UP = "up"
    DOWN = "down"
    BOTH = "both"
    NEITHER = "neither"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """``unit`` is UCUM-like: ``1`` a share or plain ratio, ``nat``, ``s``, ``{token}``, ``{completion}``.

    ``shape`` is what it is computed from, ``edge`` what happens at the edges (nothing to count, non-finite input),
    ``source`` who defined it: a paper, a trainer's own log, or this project.
    """

    name: str
    unit: str
    merge: Merge
    worse: Worse
    meaning: str
    formula: str
    shape: str
    edge: str = ""
    source: str = "RL Vitals"

    @property
    def family(self) -> Family:
        return Family(self.name.split(".", 1)[0])
