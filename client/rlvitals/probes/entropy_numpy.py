"""The sums of `entropy` for arrays; needs no torch."""

from __future__ import annotations

import numpy as np

from rlvitals.probes.arrays import Floats
from rlvitals.probes.differences_numpy import Array, blocks
from rlvitals.probes.log_bins import ENTROPY_BINS
from rlvitals.probes.log_bins_numpy import bin_counts


def summed(entropy: Array, mask: Array, certain: float) -> tuple[Floats, Floats, int]:
    """Rows of (tokens, non-finite ones under the mask, sum, certain ones), the bins, and how many they hold."""
    rows, bins = [], np.zeros(ENTROPY_BINS.count + 2)
    for block in blocks(entropy.shape):
        under = entropy[block][mask[block] != 0].astype(np.float64)
        values = under[np.isfinite(under)]
        rows.append([values.size, under.size - values.size, values.sum(), (values < np.float32(certain)).sum()])
        bins += bin_counts(ENTROPY_BINS, values)
    return np.asarray(rows, np.float64).reshape(-1), bins, int(bins.sum())
