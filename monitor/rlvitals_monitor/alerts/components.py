"""Reward components over steps: which has stood still, and which falls while the total grows.

Components bear the user's own names, so no rule can read them; what is the same of all of them is derived here
into metrics that rules read. The memory is part of the attempt's and says the same live and in a replay.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise

TOTAL = "reward.mean"
CONSTANT, TRADED, TASK_TRADED = "component.constant_steps", "component.traded", "component.task_traded"
STAGES = ((50, 25), (10, 5), (0, 1))
"""From so many observed steps on, a level is the mean of so many."""
LONGEST = STAGES[0][1]
KEPT = 50
STANDARD_ERRORS = 6.0
"""A level must be so far below its best: by chance alone the best and the least of many lie four apart."""
LARGEST = 1e100
"""Beyond it a sum of squares might overflow, and no reward is meant."""
MOST = 64
"""Components of one attempt that are followed; a name that changes at every step is none."""

_NAME = re.compile(r"(?:train/)?(?:rewards?\s*/\s*([^/@]+?)(?:\s*/\s*mean)?|critic/(\w+_score)/mean)")
_NO_COMPONENT = re.compile(
    "mean|std|min|max|sum|total|overall|all|chosen|rejected|accuracies|margins|variance|count", re.IGNORECASE
)
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_TASK = re.compile(
    "acc|accuracy|correct|correctness|success|solved?|pass|passed|exact|match|answer|outcome|task|goal|win|"
    "verify|verified|verifier|recall|iou|fbeta|math"
)
_FORM = re.compile("format|length|tags?|style|penalty|bonus|structure|language")


@dataclass(slots=True, kw_only=True)
class Component:
    """``values`` and ``totals`` are those of the last `KEPT` steps that have both; ``best`` is a level."""

    values: list[float] = field(default_factory=list)
    totals: list[float] = field(default_factory=list)
    seen: int = 0
    best: float = -math.inf
    error_at_best: float = 0.0
    total_at_best: float = 0.0
    last: float = 0.0
    run: int = 0

    def stand(self, value: float) -> int:
        """For how many steps it has had this value; 0 where it is no number."""
        if not math.isfinite(value):
            self.run = 0
        else:
            self.run = self.run + 1 if self.run and value == self.last else 1
            self.last = value
        return self.run

    def lost(self, value: float, total: float) -> float:
        """Which share of its best level is lost while the total's level has grown since; 0 where none is."""
        self.values.append(value)
        self.totals.append(total)
        del self.values[:-KEPT], self.totals[:-KEPT]
        self.seen += 1
        span = self.span
        if any(self.seen == least for least, _ in STAGES):
            self.best = -math.inf
            for end in range(span, len(self.values)):
                self._note(self.values[end - span : end], self.totals[end - span : end])
        values, totals = self.values[-span:], self.totals[-span:]
        self._note(values, totals)
        level, error = _mean(values), max(_standard_error(values), self.error_at_best)
        fallen = self.best - level > STANDARD_ERRORS * error if span > 1 else self._only_falls()
        grown = _mean(totals) - self.total_at_best > _standard_error(totals)
        return 1.0 - level / self.best if self.best > 0 and fallen and grown else 0.0

    @property
    def span(self) -> int:
        """How many steps a level is the mean of."""
        return next(span for least, span in STAGES if self.seen >= least)

    def _only_falls(self) -> bool:
        """For levels of one step, which have no error: three or more, each below the one before."""
        falls = all(after < before for before, after in pairwise(self.values))
        return falls and len(self.values) > 2

    def _note(self, values: Sequence[float], totals: Sequence[float]) -> None:
        level = _mean(values)
        if level > self.best:
            self.best, self.error_at_best, self.total_at_best = level, _standard_error(values), _mean(totals)


class Components:
    """All components of one attempt; ``names`` leads from a derived metric to the component it speaks of."""

    __slots__ = ("known", "names")

    def __init__(self) -> None:
        self.known: dict[str, Component] = {}
        self.names: dict[str, str] = {}

    def derive(self, values: Mapping[str, float]) -> dict[str, float]:
        """What one step adds; empty where it logs no component. To be called once a step."""
        self.names.clear()
        found: dict[str, float] = {}
        total = values.get(TOTAL)
        for name in values:
            if "/" in name and is_component(name):
                self._observe(name, values[name], total, found)
        return found

    def _observe(self, name: str, value: float, total: float | None, found: dict[str, float]) -> None:
        component = self.known.get(name)
        if component is None:
            if len(self.known) >= MOST:
                return
            component = self.known[name] = Component()
        self._keep(CONSTANT, float(component.stand(value)), name, found)
        # false for NaN as well
        if total is None or not (abs(total) < LARGEST and abs(value) < LARGEST):
            return
        lost = component.lost(value, total)
        self._keep(TRADED, lost, name, found)
        if component.span == LONGEST and is_task(name):
            self._keep(TASK_TRADED, lost, name, found)

    def _keep(self, metric: str, value: float, name: str, found: dict[str, float]) -> None:
        if metric not in found or value > found[metric]:
            found[metric] = value
            self.names[metric] = name

    def dump(self) -> dict[str, object]:
        return {
            name: [
                c.values,
                c.totals,
                [c.seen, c.total_at_best, c.error_at_best, c.last, c.run],
                [c.best][: c.seen],
            ]
            for name, c in self.known.items()
        }

    def restore(self, kept: Mapping[str, object]) -> None:
        """The inverse of `dump`; entries that it never wrote are left out."""
        for name, entry in kept.items():
            if isinstance(entry, (list, tuple)) and len(entry) == 4:
                values, totals, (seen, total_at_best, error_at_best, last, run), best = entry
                self.known[name] = Component(
                    values=list(map(float, values)),
                    totals=list(map(float, totals)),
                    seen=int(seen),
                    best=float(best[0]) if best else -math.inf,
                    total_at_best=float(total_at_best),
                    error_at_best=float(error_at_best),
                    last=float(last),
                    run=int(run),
                )


@lru_cache(maxsize=4096)
def is_component(name: str) -> bool:
    """Whether a name is a component's mean, as trainers write it."""
    found = _NAME.fullmatch(name)
    return found is not None and _NO_COMPONENT.fullmatch(found[1] or found[2]) is None


@lru_cache(maxsize=4096)
def is_task(name: str) -> bool:
    """Whether a component's name says that it measures the task, not the form of an answer."""
    words = [word.lower() for word in _WORD.findall(name)]
    return any(map(_TASK.fullmatch, words)) and not any(map(_FORM.fullmatch, words))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _standard_error(values: Sequence[float]) -> float:
    """Of the mean; 0 for one value, which has no spread."""
    count = len(values)
    if count < 2:
        return 0.0
    middle = _mean(values)
    return math.sqrt(sum((value - middle) ** 2 for value in values) / (count - 1) / count)
