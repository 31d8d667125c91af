"""How long answers would be if nothing cut them: Kaplan and Meier's estimate (1958) from mergeable sketches.

An answer that was cut only says that it is longer than that, so the quantiles of what was seen are too small.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlvitals.probes.beta import beta_share

if TYPE_CHECKING:
    from rlvitals.probes.sketch import Sketch

COVERAGE, CONFIDENCE = 0.95, 0.95
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class Cover:
    """``length`` covers the wanted share of answers with ``confidence``; None: no length that was seen does."""

    length: int | None
    confidence: float


def covering_length(
    ended: Sketch, cut: Sketch, *, longest: float, coverage: float = COVERAGE, confidence: float = CONFIDENCE
) -> Cover | None:
    """The least length that covers ``coverage`` of the answers with ``confidence``; None without any answer.

    ``ended`` counts answers by length that ended by themselves, ``cut`` those that something cut; ``longest`` is
    the longest that ended. Where no length reaches ``confidence`` it is the one with the most, provided that the
    estimate itself covers; where not even that does, ``length`` is None and ``confidence`` is that of the best.
    The confidence is that of a one-sided Clopper-Pearson bound with Greenwood's effective number of answers; for
    answers of which none was cut it is exact: 1 - 0.95^n for the longest of n.
    """
    steps = _steps(ended, cut, longest)
    if not steps:
        return Cover(length=None, confidence=0.0) if cut.total else None
    best: Cover | None = None
    for length, left, answers in steps:
        if left > 1.0 - coverage + _ROUNDING:
            continue
        found = Cover(length=length, confidence=_confidence(left, answers, coverage))
        if found.confidence >= confidence:
            return found
        if best is None or found.confidence > best.confidence:
            best = found
    _, left, answers = steps[-1]
    return best or Cover(length=None, confidence=_confidence(left, answers, coverage))


def _confidence(left: float, answers: float, coverage: float) -> float:
    """That no more than 1 - ``coverage`` are left, of which the share ``left`` of so many ``answers`` was seen."""
    return beta_share(left * answers + 1.0, (1.0 - left) * answers, 1.0 - coverage)


def _steps(ended: Sketch, cut: Sketch, longest: float) -> list[tuple[int, float, float]]:
    """(length, share still running after it, effective number of answers) at each length where answers ended.

    Within a bin answers that were cut are at risk to its end, so that the estimate is never too short.
    """
    at_risk = ended.total + cut.total
    left, variance, answers = 1.0, 0.0, float(at_risk)
    steps = []
    deaths = (ended.below, *ended.counts, ended.above)
    losses = (cut.below, *cut.counts, cut.above)
    for place, (died, lost) in enumerate(zip(deaths, losses, strict=True)):
        if died:
            left *= 1.0 - died / at_risk
            if died < at_risk:
                variance += died / (at_risk * (at_risk - died))
                answers = (1.0 - left) / (left * variance)
            else:
                left = 0.0
            steps.append((_last_of(ended, place, longest), left, answers))
        at_risk -= died + lost
    return steps


def _last_of(sketch: Sketch, place: int, longest: float) -> int:
    """The greatest whole length that is counted in this place, but no more than was seen."""
    last = math.inf if place > len(sketch.counts) else math.ceil(sketch.edge(place)) - 1
    return int(min(last, longest))
