"""Two rank statistics: whether one sample lies lower than another, and how steep a series runs. Pure.

Mann & Whitney 1947; the slope and its interval are Sen's (1968), by Kendall's variance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from statistics import NormalDist, median

EXACT_MAX = 20
"""Largest sample up to which the distribution is counted out where no two values are equal."""


def chance_lower(lower: Sequence[float], higher: Sequence[float]) -> float:
    """The one-sided p-value that ``lower`` lies lower than ``higher`` by chance. Both hold finite numbers.

    Exact where all values differ, else by the normal approximation with the correction for ties; 1 for none.
    """
    n, m = len(lower), len(higher)
    if not n or not m:
        return 1.0
    wins = sum((a > b) + 0.5 * (a == b) for a in lower for b in higher)
    values = [*lower, *higher]
    if len(set(values)) == n + m and max(n, m) <= EXACT_MAX:
        counts = _counts(n, m)
        return math.fsum(counts[: int(wins) + 1]) / math.fsum(counts)
    ties = math.fsum(count**3 - count for count in (values.count(value) for value in set(values)))
    total = n + m
    variance = n * m / 12.0 * (total + 1 - ties / (total * (total - 1)))
    if variance <= 0.0:
        return 1.0
    return NormalDist().cdf((wins + 0.5 - n * m / 2.0) / math.sqrt(variance))


@cache
def _counts(n: int, m: int) -> tuple[int, ...]:
    """In how many of the orders of ``n`` and ``m`` different values a value of the first wins 0, 1, … times."""
    if n == 0 or m == 0:
        return (1,)
    with_first, without = _counts(n - 1, m), _counts(n, m - 1)
    # the largest of all is of the first sample and wins m times, or of the second and wins nothing
    return tuple(
        (with_first[u - m] if 0 <= u - m < len(with_first) else 0) + (without[u] if u < len(without) else 0)
        for u in range(n * m + 1)
    )


def slope(at: Sequence[float], values: Sequence[float], confidence: float) -> tuple[float, float, float]:
    """Lower end, middle and upper end of the slope of ``values`` over ``at``; all 0 for fewer than three."""
    if len(values) < 3:
        return 0.0, 0.0, 0.0
    n = len(values)
    slopes = sorted(
        (values[j] - values[i]) / (at[j] - at[i]) for i in range(n) for j in range(i + 1, n) if at[j] != at[i]
    )
    reach = NormalDist().inv_cdf(0.5 + confidence / 2.0) * math.sqrt(n * (n - 1) * (2 * n + 5) / 18.0)
    first = max(0, math.floor((len(slopes) - reach) / 2.0))
    return slopes[first], median(slopes), slopes[len(slopes) - 1 - first]
