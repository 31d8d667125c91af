"""Counts values in log bins where the tensors are."""

from __future__ import annotations

import torch
from torch import Tensor

from rlvitals.probes import reduction
from rlvitals.probes.log_bins import LARGEST, LogBins
from rlvitals.probes.reduction import Workspace


class BinCounts:
    """Counts |values|; `part` holds the count of each bin, the one below first and the one above last."""

    def __init__(self, bins: LogBins, like: Tensor) -> None:
        self._bins, self._space = bins, Workspace(like, torch.float32, torch.int64)
        self._codes = torch.zeros(bins.codes, dtype=torch.float64, device=like.device)
        self._one = torch.ones(1, dtype=torch.float64, device=like.device)

    def add(self, values: Tensor, rows: slice) -> None:
        """Counts |values| (rows, T), all of them, without NaN."""
        single, whole = self._space.of(rows)
        bits = single.copy_(values).abs_().view(torch.int32).bitwise_right_shift_(self._bins.cut)
        codes = whole.copy_(bits).view(-1)
        if reduction.on_host(codes):
            self._codes += torch.bincount(codes, minlength=self._bins.codes)
        else:
            self._codes.scatter_add_(0, codes, self._one.expand(codes.shape))

    def part(self) -> Tensor:
        bins, codes = self._bins, torch.arange(1, self._bins.codes + 1, device=self._codes.device)
        largest = (codes << bins.cut).sub_(1).clamp_(max=LARGEST).int().view(torch.float32).double()
        where = largest.clamp_min_(bins.least).log_().mul_(bins.per_nat).add_(bins.shift).clamp_(0, bins.count + 1)
        counts = torch.zeros(bins.count + 2, dtype=torch.float64, device=self._codes.device)
        return counts.scatter_add_(0, where.long(), self._codes)
