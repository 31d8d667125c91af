"""Counts values in log bins; needs no torch."""

from __future__ import annotations

import numpy as np

from rlvitals.probes.arrays import Floats
from rlvitals.probes.log_bins import LogBins


def bin_counts(bins: LogBins, values: Floats) -> Floats:
    """The count of |values| in each bin, the one below first and the one above last."""
    # the same single precision as on a device, so that both choose the same bin
    single = np.log(np.maximum(np.abs(values.astype(np.float32)), np.float32(bins.least)))
    where = (single * np.float32(bins.per_nat) + np.float32(bins.shift)).clip(0, bins.count + 1).astype(np.int64)
    return np.bincount(where.ravel(), minlength=bins.count + 2).astype(np.float64)
