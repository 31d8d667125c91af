"""Which completion a row of a micro-batch is: TRL shuffles a generation before it trains on it.

A row is known again by a hash of its ids, taken where they are, so nothing waits for a device. Rows that are
equal, prompt included, get the number of the first of them: they are the same text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

KEYS = ("prompt_ids", "completion_ids")
_MULTIPLIER, _INCREMENT = 6364136223846793005, 1442695040888963407


class Numbering:
    """Learns a generation's rows and numbers those of its micro-batches; ``first`` is the first row's number."""

    def __init__(self) -> None:
        self._hashes: Tensor | None = None
        self._first = 0

    def learn(self, generation: Mapping[str, Any], first: int) -> None:
        self._hashes, self._first = _hashes(generation), first

    def of(self, inputs: Mapping[str, Any]) -> Tensor | None:
        """(b,) numbers of the rows, -1 for one that was not in the generation; None where nothing is known."""
        wanted = _hashes(inputs) if self._hashes is not None else None
        if wanted is None or self._hashes is None or wanted.device != self._hashes.device:
            return None
        same = wanted[:, None] == self._hashes[None, :]
        return torch.where(same.any(1), same.to(torch.uint8).argmax(1) + self._first, -1)


def _hashes(batch: Mapping[str, Any]) -> Tensor | None:
    """(B,) of the rows' ids and their places; sums wrap around by design."""
    ids = [batch.get(key) for key in KEYS]
    if not all(isinstance(value, Tensor) and value.dim() == 2 for value in ids):
        return None
    whole = torch.cat([value for value in ids if value is not None], 1).detach().long()
    places = torch.arange(1, whole.shape[1] + 1, device=whole.device)
    mixed = (whole + 1) * (places * _MULTIPLIER + _INCREMENT)
    return (mixed ^ (mixed >> 29)).sum(1)
