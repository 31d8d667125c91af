"""Steps with us and without, in turn within one run: the order, the stretch of a step, and its 95 % bounds.

Blocks of four are on off off on and off on on off in turn, so that a drift cancels. Blocks are compared by the
sums of their steps, and the bounds are a bootstrap's of a trimmed mean over the blocks.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Iterator, Sequence

WARM_UP = 6
"""Steps with us in which things are imported and made for the first time; they are not counted."""
PATTERNS = ((True, False, False, True), (False, True, True, False))
BUDGET = 0.02
TRIMMED = 0.1
RESAMPLES = 4000


def turns(blocks: int) -> list[bool]:
    """Whether we take part, step by step, from the first step of the warm-up on."""
    return [True] * WARM_UP + [on for block in range(blocks) for on in PATTERNS[block % 2]]


def describe(clock: str, seconds: Sequence[float], turned: Sequence[bool]) -> str:
    """One line of what a step costs more with us; ``seconds`` and ``turned`` from the first step on."""
    stretches = list(_stretches(seconds[WARM_UP:], turned[WARM_UP:]))
    without = statistics.median(s for s, on in zip(seconds, turned, strict=True) if not on)
    low, high = bounds(stretches)
    return (
        f"stretch of a step with us, {clock} clock ({1000 * without:.0f} ms without, {len(stretches)} blocks): "
        f"{100 * centre(stretches):+.2f} % of the step, 95 % bounds {100 * low:+.2f} … {100 * high:+.2f} %, "
        f"at most {1000 * without * high:.1f} ms a step"
    )


def centre(values: Sequence[float]) -> float:
    """The mean without the least and the largest tenth."""
    cut = int(TRIMMED * len(values))
    return statistics.fmean(sorted(values)[cut : len(values) - cut])


def bounds(values: Sequence[float]) -> tuple[float, float]:
    """Bootstrap 95 % bounds of the centre."""
    dice = random.Random(0)
    centres = sorted(centre(dice.choices(values, k=len(values))) for _ in range(RESAMPLES))
    return centres[int(0.025 * RESAMPLES)], centres[int(0.975 * RESAMPLES)]


def _stretches(seconds: Sequence[float], turned: Sequence[bool]) -> Iterator[float]:
    """Of each block: its two steps with us against its two without."""
    for start in range(0, len(seconds) // 4 * 4, 4):
        block = list(zip(seconds[start : start + 4], turned[start : start + 4], strict=True))
        yield math.fsum(s for s, on in block if on) / math.fsum(s for s, on in block if not on) - 1
