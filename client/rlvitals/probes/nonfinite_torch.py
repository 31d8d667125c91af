"""The census of non-finite values where the tensors are, block by block."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from rlvitals.probes import reduction
from rlvitals.probes.census import COLUMNS
from rlvitals.probes.reduction import at, row_blocks, stack


def counted(values: Tensor, mask: Tensor | None, ids: Tensor | None) -> Tensor:
    """A row of `census.COLUMNS` numbers for each block of (B, T) ``values`` that has something non-finite."""
    return _rows(values, lambda rows: values[rows], mask, ids)


def counted_ratios(logp: Tensor, old: Tensor, mask: Tensor | None, ids: Tensor | None) -> Tensor:
    """The same of exp(logp - old) in the float type of ``logp``: only an overflow and NaN are not finite."""
    limit = math.log(torch.finfo(logp.dtype).max)

    def overflown(rows: slice) -> Tensor:
        apart = (logp[rows] - old[rows]).to(logp.dtype)
        return apart.masked_fill_(apart.isneginf(), 0.0).masked_fill_(apart > limit, torch.inf)

    return _rows(logp, overflown, mask, ids)


def _rows(
    like: Tensor,
    values: Callable[[slice], Tensor],
    mask: Tensor | None,
    ids: Tensor | None,
) -> Tensor:
    found = []
    for rows in row_blocks(like):
        part = values(rows)
        if reduction.on_host(part) and _finite(part):
            continue
        bad = ~part.isfinite()
        seen = bad & (mask[rows] != 0) if mask is not None else bad
        index = seen.reshape(-1).to(torch.uint8).argmax()
        kinds = [(kind & seen).sum() for kind in (part.isnan(), part.isposinf(), part.isneginf())]
        token = at(ids[rows], index) if ids is not None else torch.full_like(index, -1)
        place = index + rows.start * like.shape[1]
        found.append(stack([*kinds, (bad & ~seen).sum(), place, token, at(part, index)]))
    return torch.cat(found) if found else torch.zeros(COLUMNS, dtype=torch.float64, device=like.device)


def _finite(part: Tensor) -> bool:
    """A finite sum has no non-finite term; the other way round an overflow only costs a second look."""
    return math.isfinite(part.sum().item())
