"""Numbers as evenly spread 64-bit words: hashes that are the same in every process."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint64]

WORD = 1 << 64
STRIDE = 0x9E3779B97F4A7C15
"""2**64 over the golden ratio: what SplitMix64 adds for the next number."""


def mixed(numbers: Words) -> Words:
    """SplitMix64's finaliser (Steele, Lea and Flood 2014), which wraps around by design."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    words: Words = numbers ^ (numbers >> np.uint64(31))
    return words
