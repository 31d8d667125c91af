"""The sums of `entropy` where the tensors are."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor

from rlvitals.probes import reduction
from rlvitals.probes.arrays import Floats
from rlvitals.probes.log_bins import ENTROPY_BINS
from rlvitals.probes.log_bins_torch import BinCounts
from rlvitals.probes.reduction import Reduction, Workspace, row_blocks, stack
from rlvitals.probes.tally import Tally


def launch(
    entropy: Tensor, mask: Tensor, certain: float, build: Callable[[Floats, Floats, int], Tally]
) -> Reduction:
    """Rows of (tokens, non-finite ones under the mask, sum, certain ones), and the bins of all elements."""
    space, bins, rows = Workspace(entropy, torch.float64, torch.float64), BinCounts(ENTROPY_BINS, entropy), []
    for block in row_blocks(entropy):
        values, counted = space.of(block)
        used, bad = mask[block].bool(), torch.zeros((), device=entropy.device)
        # what does not count is 0: it adds nothing and falls into the bin below
        total = values.copy_(entropy[block]).mul_(counted.copy_(used)).sum()
        # a finite sum shows that all was finite, padding too
        if not reduction.on_host(values) or not math.isfinite(total.item()):
            finite = values.copy_(entropy[block]).isfinite()
            bad = (used & ~finite).count_nonzero()
            used = used & finite
            total = values.masked_fill_(~used, 0.0).sum()
        bins.add(values, block)
        rows.append(stack([used.count_nonzero(), bad, total, (used & (values < certain)).count_nonzero()]))
    stats = torch.cat(rows) if rows else entropy.new_zeros(0, dtype=torch.float64)
    return Reduction(parts=(stats, bins.part()), build=partial(_built, build, entropy.numel()))


def _built(build: Callable[[Floats, Floats, int], Tally], elements: int, parts: Sequence[Floats]) -> Tally:
    return build(parts[0], parts[1], elements)
