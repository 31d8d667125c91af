"""The sums of `ratios` for arrays; needs no torch."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rlvitals.probes.arrays import Floats
from rlvitals.probes.differences_numpy import Array, Block, differences
from rlvitals.probes.log_bins import RATIO_BINS
from rlvitals.probes.log_bins_numpy import bin_counts


def summed(
    above: Array,
    below: Array,
    mask: Array,
    ids: Array | None,
    *,
    beyond: float,
    extra: Callable[[Block], list[float]] | None,
) -> tuple[Floats, Floats, int]:
    """The rows of `ratios.STATS` with those of ``extra`` and the peaks, the bins, and how many they hold."""
    rows, bins = [], np.zeros(RATIO_BINS.count + 2)
    for block in differences(above, below, mask):
        log_ratio = block.difference
        with np.errstate(over="ignore", invalid="ignore"):
            excess = np.expm1(log_ratio)
            sums = [
                float(log_ratio.size),
                float(excess.sum()),
                float((excess * excess).sum()),
                float((excess - log_ratio).sum()),
                float((np.abs(log_ratio) > beyond).sum()),
            ]
            sums += extra(block) if extra is not None else []
        rows.append([*sums, *block.peak(log_ratio, ids), *block.peak(-log_ratio, ids)])
        bins += bin_counts(RATIO_BINS, log_ratio)
    return np.asarray(rows, np.float64).reshape(-1), bins, int(bins.sum())


def clipped(advantages: Array, floor: float, ceiling: float, block: Block) -> list[float]:
    """Tokens clipped below and above."""
    pulls, log_ratio = block.of(advantages), block.difference
    return [float(((log_ratio < floor) & (pulls < 0)).sum()), float(((log_ratio > ceiling) & (pulls > 0)).sum())]


def apart(above: Array, below: Array, block: Block) -> list[float]:
    """Sums of |log r| and of |exp(above) - exp(below)|."""
    over, under = (np.exp(block.of(values).astype(np.float64)) for values in (above, below))
    return [float(np.abs(block.difference).sum()), float(np.abs(over - under).sum())]
