"""A logarithmic scale that survives zeros and negative numbers, with tick labels that say the true values. Pure.

    place(x) = sign(x) · log10(1 + |x| / c)

Near zero it is linear, far from it logarithmic (Webber 2013, doi:10.1088/0957-0233/24/2/027001). ``c``, the linear
threshold, is a power of ten below most of the values, so that hardly any of them lies in the linear part.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rlvitals_dashboard.words import number

MOST_DECADES = 14
"""Between the threshold and the largest value; what is smaller still lies near zero."""
TINY_SHARE = 0.05
"""Of the values that are not zero may lie below the threshold."""

FAR = 1e17
"""Times the threshold: from here on the 1 is below the last digit, and the quotient may overflow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SymLog:
    """``linear`` is c, above zero."""

    linear: float

    @classmethod
    def of(cls, values: Iterable[float]) -> SymLog:
        """For finite ``values``; 1 where all of them are zero."""
        sizes = sorted(abs(value) for value in values if value)
        if not sizes:
            return cls(linear=1.0)
        low = math.floor(math.log10(sizes[int(TINY_SHARE * len(sizes))]))
        high = math.floor(math.log10(sizes[-1]))
        return cls(linear=10.0 ** max(low, high - MOST_DECADES, -300))

    def place(self, value: float) -> float:
        """Where a finite value lies on the axis."""
        size = abs(value)
        far = size > FAR * self.linear
        tens = math.log10(size) - math.log10(self.linear) if far else math.log1p(size / self.linear) / math.log(10)
        return math.copysign(tens, value)

    def value(self, place: float) -> float:
        """The inverse of `place`."""
        tens = abs(place)
        far = tens > math.log10(FAR)
        size = 10 ** (tens + math.log10(self.linear)) if far else math.expm1(tens * math.log(10)) * self.linear
        return math.copysign(size, place)

    def ticks(self, low: float, high: float, most: int = 5) -> tuple[list[float], list[str]]:
        """Places and true labels: zero, and powers of ten on each side that has values."""
        least = round(math.log10(self.linear))
        powers = [_power(side, least) for side in (-low, high)]
        decades = sum(max(power - least + 1, 0) for power in powers if power is not None)
        stride = max(1, math.ceil(decades / max(most - 1, 1)))
        below, above = (_sizes(least, power, stride) for power in powers)
        true = [*(-size for size in reversed(below)), *([0.0] if low <= 0 <= high else []), *above]
        return [self.place(value) for value in true], [number(value) for value in true]


def _power(size: float, least: int) -> int | None:
    """The power of ten of the largest tick on one side; None where nothing lies there."""
    return None if size <= 0 else max(math.floor(math.log10(size)), least)


def _sizes(least: int, power: int | None, stride: int) -> Sequence[float]:
    """From the largest power down, so that the largest values have a label beside them."""
    return [] if power is None else [10.0**at for at in range(power, least - 1, -stride)][::-1]
