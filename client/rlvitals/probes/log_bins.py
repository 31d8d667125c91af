"""Log-spaced bins of a `Sketch`, with one more below and one above.

Values are counted by the upper bits of their single-precision form, exponent and some of the mantissa, which is
quicker than a logarithm of each; the counts then go to the bin of the largest value with these bits. So a value
may be taken for a slightly larger one, never for a smaller one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from rlvitals.probes.sketch import Sketch

LARGEST = 0x7F7FFFFF
"""The bits of the largest finite number: what is more goes into the bin above."""


@dataclass(frozen=True, slots=True)
class LogBins:
    """``count`` bins over [low, high); ``mantissa`` is how many of its bits tell two values apart.

    A quantile is too high by a factor of at most one bin and ``1 + 2 ** -mantissa``.
    """

    low: float
    high: float
    count: int
    mantissa: int

    @property
    def codes(self) -> int:
        """How many values can be told apart: 8 bits of exponent, and the mantissa's."""
        return 1 << (8 + self.mantissa)

    @property
    def cut(self) -> int:
        """How many of the 23 bits of the mantissa are not looked at."""
        return 23 - self.mantissa

    @property
    def per_nat(self) -> float:
        return self.count / math.log(self.high / self.low)

    @property
    def shift(self) -> float:
        """A value's bin, 0 for the one below, is ``log(value) * per_nat + shift``, cut to [0, count + 1]."""
        return 1.0 - math.log(self.low) * self.per_nat

    @property
    def least(self) -> float:
        """Whatever is smaller goes into the bin below, and the log of 0 is never taken."""
        return self.low / 2

    def sketch(self, found: Sequence[float], unused: int = 0) -> Sketch:
        """From the counts of all bins; ``unused`` elements of the bin below were no values at all."""
        counts = [int(n) for n in found]
        return Sketch(
            low=self.low, high=self.high, counts=tuple(counts[1:-1]), below=counts[0] - unused, above=counts[-1]
        )


RATIO_BINS = LogBins(1e-4, 1e2, 96, 7)
"""|log ratio| in nats: at most 16.4 % high."""
ENTROPY_BINS = LogBins(1e-6, 16.0, 96, 5)
"""Nats; 16 is more than a vocabulary of 8 million can have; at most 22.6 % high."""
