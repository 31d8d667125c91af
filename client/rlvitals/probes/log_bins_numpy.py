"""Counts values in log bins; needs no torch."""

from __future__ import annotations

import numpy as np

from rlvitals.probes.arrays import Floats
from rlvitals.probes.log_bins import LARGEST, LogBins


def bin_counts(bins: LogBins, values: Floats) -> Floats:
    """The count of |values| in each bin, the one below first and the one above last."""
    codes = np.abs(values.astype(np.float32)).view(np.int32) >> bins.cut
    found = np.bincount(codes.ravel(), minlength=bins.codes)
    bits = np.minimum((np.arange(1, bins.codes + 1) << bins.cut) - 1, LARGEST).astype(np.int32)
    largest = np.maximum(bits.view(np.float32).astype(np.float64), bins.least)
    where = (np.log(largest) * bins.per_nat + bins.shift).clip(0, bins.count + 1).astype(np.int64)
    counts: Floats = np.bincount(where, weights=found, minlength=bins.count + 2).astype(np.float64)
    return counts
