"""The sums of `ratios` where the tensors are, in cache-sized blocks, without waiting on a GPU."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor

from rlvitals.probes import reduction
from rlvitals.probes.arrays import Floats
from rlvitals.probes.differences_torch import Block, by_rows, differences
from rlvitals.probes.log_bins import RATIO_BINS
from rlvitals.probes.log_bins_torch import BinCounts
from rlvitals.probes.reduction import Reduction, Workspace, per_token, stack
from rlvitals.probes.tally import Tally


def launch(
    above: Tensor,
    below: Tensor,
    mask: Tensor,
    ids: Tensor | None,
    *,
    beyond: float,
    extra: Callable[[Block, Tensor], list[Tensor]] | None,
    build: Callable[[Floats, Floats, int], Tally],
) -> Reduction:
    """Launches the sums of r = exp(above - below), those that ``extra`` adds, the peaks and the bins.

    ``extra`` takes a block and e = r - 1 of its tokens, which it may overwrite; ``beyond`` is the largest |log r|
    that is not counted. ``build`` takes the rows, the bins and how many elements the bins hold, tokens that do not
    count among them as a ratio of 1.
    """
    bins, rows = BinCounts(RATIO_BINS, above), []
    for block in differences(above, below, mask, ids):
        excess = torch.exp(block.difference, out=block.scratch).sub_(1.0)
        sums = _sums(block, excess, beyond) + (extra(block, excess) if extra is not None else [])
        bins.add(block.difference, block.rows)
        rows += [stack(sums), *block.peaks]
    stats = torch.cat(rows) if rows else above.new_zeros(0, dtype=torch.float64)
    return Reduction(parts=(stats, bins.part()), build=partial(_built, build, above.numel()))


def _built(build: Callable[[Floats, Floats, int], Tally], elements: int, parts: Sequence[Floats]) -> Tally:
    return build(parts[0], parts[1], elements)


def clipped(advantages: Tensor, floor: float, ceiling: float, block: Block, excess: Tensor) -> list[Tensor]:
    """Tokens clipped below and above; by rows where a row has one advantage. ``excess`` is not read."""
    if block.low >= floor and block.high <= ceiling:
        return [torch.zeros((), dtype=torch.float64, device=block.difference.device)] * 2
    pulls = by_rows(per_token(advantages), block.rows)
    low, high = block.difference < floor, block.difference > ceiling
    if pulls.shape[1] == 1:
        low, high = low.sum(1, keepdim=True), high.sum(1, keepdim=True)
    return [(low * (pulls < 0)).sum(), (high * (pulls > 0)).sum()]


class Apart:
    """Sums of |log r| and of |exp(above) - exp(below)| = exp(below) |e|."""

    def __init__(self, above: Tensor, below: Tensor) -> None:
        self._above, self._below, self._space = above, below, Workspace(below, torch.float64)

    def __call__(self, block: Block, excess: Tensor) -> list[Tensor]:
        (chance,) = self._space.of(block.rows)
        torch.exp(chance.copy_(self._below[block.rows]), out=chance)
        apart = excess.mul_(chance).abs_().sum()
        if not reduction.on_host(apart) or not math.isfinite(apart.item()):
            # e overflows where the sampler gave the token next to no chance, or what does not count is NaN
            chance.sub_(self._above[block.rows].double().exp_()).abs_()
            apart = chance.masked_fill_(block.counted == 0, 0.0).sum()
        return [torch.abs(block.difference, out=excess).sum(), apart]


def _sums(block: Block, excess: Tensor, beyond: float) -> list[Tensor]:
    """`ratios.STATS`: tokens, sums of e, e^2 and e - log r, tokens beyond. A log ratio of 0 adds nothing."""
    flat, total = excess.view(-1), excess.sum()
    far = torch.zeros_like(total)
    if max(-block.low, block.high) > beyond:
        far = (block.difference.abs() > beyond).count_nonzero()
    return [block.tokens, total, flat.dot(flat), total - block.total, far]
