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
from rlvitals.probes.reduction import Reduction, row_blocks, stack
from rlvitals.probes.tally import Tally


def launch(
    entropy: Tensor, mask: Tensor, certain: float, build: Callable[[Floats, Floats, int], Tally]
) -> Reduction:
    """Rows of (tokens, non-finite ones under the mask, sum, certain ones), and the bins of all elements."""
    blocks = _quarters(entropy)
    bins, rows = BinCounts(ENTROPY_BINS, entropy[blocks[0]] if blocks else entropy), []
    for block in blocks:
        used, bad = mask[block].bool(), torch.zeros((), device=entropy.device)
        # what does not count is 0: it adds nothing and falls into the bin below
        values = entropy[block] * used
        total = values.sum(dtype=torch.float64)
        # a finite sum shows that all was finite, padding too
        if not reduction.on_host(values) or not math.isfinite(total.item()):
            finite = entropy[block].isfinite()
            bad = (used & ~finite).count_nonzero()
            used = used & finite
            values = entropy[block].masked_fill(~used, 0.0)
            total = values.sum(dtype=torch.float64)
        bins.add(values, slice(0, values.shape[0]))
        low = (values.float() < certain).logical_and_(used).count_nonzero()
        rows.append(stack([used.count_nonzero(), bad, total, low]))
    stats = torch.cat(rows) if rows else entropy.new_zeros(0, dtype=torch.float64)
    return Reduction(parts=(stats, bins.part()), build=partial(_built, build, entropy.numel()))


def _quarters(like: Tensor) -> list[slice]:
    """Small blocks, since there are few inputs beside which the workspace must stay small."""
    blocks = row_blocks(like)
    step = max(1, (blocks[0].stop + 3) // 4) if blocks else 1
    return [
        slice(start, min(start + step, like.shape[0])) for start in range(0, like.shape[0] if blocks else 0, step)
    ]


def _built(build: Callable[[Floats, Floats, int], Tally], elements: int, parts: Sequence[Floats]) -> Tally:
    return build(parts[0], parts[1], elements)
