"""Counts values in log bins where the tensors are."""

from __future__ import annotations

import torch
from torch import Tensor

from rlvitals.probes import reduction
from rlvitals.probes.log_bins import LogBins
from rlvitals.probes.reduction import Workspace


class BinCounts:
    """``part`` holds the count of each bin, the one below first and the one above last."""

    def __init__(self, bins: LogBins, like: Tensor) -> None:
        self._bins, self._space = bins, Workspace(like, torch.float32, torch.int64)
        self.part = torch.zeros(bins.count + 2, dtype=torch.float64, device=like.device)
        self._one = torch.ones(1, dtype=torch.float64, device=like.device)

    def add(self, values: Tensor, rows: slice) -> None:
        """Counts |values| (rows, T), all of them, without NaN."""
        # single precision is enough to choose a bin; whatever is below the least edge goes below
        bins, (single, whole) = self._bins, self._space.of(rows)
        single.copy_(values).abs_().clamp_min_(bins.least).log_().mul_(bins.per_nat).add_(bins.shift)
        where = whole.copy_(single.clamp_(0, bins.count + 1)).view(-1)
        if reduction.on_host(where):
            self.part += torch.bincount(where, minlength=bins.count + 2)
        else:
            self.part.scatter_add_(0, where, self._one.expand(where.shape))
