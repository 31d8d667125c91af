"""Differences of two log-probs under the loss mask, in doubles, block by block where the tensors are."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from rlvitals.probes import reduction
from rlvitals.probes.reduction import Workspace, at, nowhere, row_blocks, span, stack


@dataclass(frozen=True, slots=True)
class Block:
    """Some rows of (B, T), in buffers that the next block overwrites.

    A token counts where the mask is not 0 and both log-probs are finite: there ``counted`` is 1, elsewhere it and
    ``difference`` are 0. ``low`` and ``high`` enclose all differences; ``peaks`` are (value, flat index, id or -1)
    of the largest difference and of the largest with its sign turned; ``total`` is the sum of the differences.
    ``scratch`` is the user's.
    """

    rows: slice
    difference: Tensor
    counted: Tensor
    scratch: Tensor
    total: Tensor
    low: float
    high: float
    peaks: tuple[Tensor, Tensor]

    @property
    def tokens(self) -> Tensor:
        return self.counted.sum()


def differences(minuend: Tensor, subtrahend: Tensor, mask: Tensor, ids: Tensor | None) -> Iterator[Block]:
    """minuend - subtrahend; all (B, T) on one device."""
    space, most, least = Workspace(minuend, *[torch.float64] * 3), _Peaks(minuend, ids), _Peaks(minuend, ids)
    for rows in row_blocks(minuend):
        difference, counted, scratch = space.of(rows)
        total = _difference_into(difference, counted, minuend[rows], subtrahend[rows], mask[rows])
        low, high = span(difference)
        peaks = (
            most.of(rows, high, partial(_signed, difference, 1.0, counted, scratch)),
            least.of(rows, -low, partial(_signed, difference, -1.0, counted, scratch)),
        )
        yield Block(rows, difference, counted, scratch, total, low, high, peaks)


def by_rows(values: Tensor, rows: slice) -> Tensor:
    """The rows of what broadcasts to (B, T)."""
    return values[rows] if values.shape[0] > 1 else values


def _difference_into(out: Tensor, counted: Tensor, minuend: Tensor, subtrahend: Tensor, mask: Tensor) -> Tensor:
    """Fills both and returns the sum of ``out``."""
    used = mask.bool()
    counted.copy_(used)
    out.copy_(minuend).sub_(subtrahend)
    # a product is faster than a selection, and a finite sum shows that all was finite, padding too
    if reduction.on_host(out):
        total = out.mul_(counted).sum()
        if math.isfinite(total.item()):
            return total
        out.copy_(minuend).sub_(subtrahend)
    used = used & out.isfinite()
    counted.copy_(used)
    return out.masked_fill_(~used, 0.0).sum()


def _signed(difference: Tensor, sign: float, counted: Tensor, out: Tensor) -> Tensor:
    """The differences with ``sign``, -Inf where a token does not count."""
    return torch.mul(difference, sign, out=out).masked_fill_(counted == 0, -math.inf)


class _Peaks:
    """Keeps the largest value over blocks, with its flat index and id, and looks only where it can be."""

    def __init__(self, like: Tensor, ids: Tensor | None) -> None:
        self._ids, self._best, self._width, self._none = ids, -math.inf, like.shape[1], nowhere(like)

    def of(self, rows: slice, bound: float, values: Callable[[], Tensor]) -> Tensor:
        """(value, flat index, id or -1) of a block none of whose ``values`` is above ``bound``."""
        if bound <= self._best:
            return self._none
        found = values().view(-1)
        index = found.argmax()
        value = at(found, index)
        if reduction.on_host(found):
            # not the bound, which tokens that do not count may have set
            self._best = max(self._best, value.item())
        token = at(self._ids[rows], index) if self._ids is not None else torch.full_like(index, -1)
        return stack([value, index + rows.start * self._width, token])
