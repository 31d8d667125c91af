"""The largest value of a batch with its place, found block by block where the tensors are."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from rlvitals.probes.reduction import at, nowhere, on_host, stack


class Peaks:
    """Keeps the largest value over blocks, with its flat index and id, and looks only where it can be."""

    def __init__(self, like: Tensor, ids: Tensor | None) -> None:
        self._ids, self._best, self._width = ids, -math.inf, like.shape[1]
        self._none = nowhere(like)

    def of(self, block: slice, bound: float, values: Callable[[], Tensor]) -> Tensor:
        """(value, flat index, id or -1) of a block none of whose ``values`` is above ``bound``."""
        if bound <= self._best:
            return self._none
        found = values().view(-1)
        index = found.argmax()
        value = at(found, index)
        if on_host(found):
            # not the bound, which tokens that do not count may have set
            self._best = max(self._best, value.item())
        token = at(self._ids[block], index) if self._ids is not None else torch.full_like(index, -1)
        return stack([value, index + block.start * self._width, token])


def counted(values: Tensor, sign: float, unused: Tensor, out: Tensor) -> Tensor:
    """The values with ``sign``, -Inf where a token does not count."""
    return torch.mul(values, sign, out=out).masked_fill_(unused, -math.inf)
