"""Token weights, policy pull and counts of `gradients` and `forced` where the tensors are."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor

from rlvitals.probes import reduction
from rlvitals.probes.arrays import Floats
from rlvitals.probes.differences_torch import by_rows
from rlvitals.probes.id_sums import IdSums
from rlvitals.probes.reduction import (
    IdTable,
    Reduction,
    Workspace,
    at,
    moved,
    per_token,
    row_blocks,
    stack,
    tokens_by_row,
)
from rlvitals.probes.tally import Tally


def number_on(mask: Tensor, number: float | Tensor) -> Tensor:
    """A double where the mask is; a GPU waits for nothing, unless the number has to come from one to a CPU."""
    if isinstance(number, Tensor):
        return moved(number, mask.device).double()
    return torch.full((), float(number), dtype=torch.float64, device=mask.device)


def tokens_of_rows(mask: Tensor) -> Tensor:
    """(B,) tokens under the mask, at least 1, as doubles."""
    return tokens_by_row(mask).clamp_min(1).double()


def tokens_of_batch(mask: Tensor) -> Tensor:
    """Tokens under the mask, at least 1, as a double."""
    return tokens_by_row(mask).sum().clamp_min(1).double()


def policy_pull(
    logp: Tensor,
    old: Tensor | None,
    advantages: Tensor,
    mask: Tensor,
    weight: Tensor,
    build: Callable[[Sequence[Floats]], Tally],
    *,
    clip: tuple[float, float] | None = None,
    cap: float | None = None,
) -> Reduction:
    """Sum of (w A r)^2, one number a block; a clipped token pulls nothing, and r is at most ``cap``."""
    pulls, weights, space, rows = (
        per_token(advantages),
        per_token(weight),
        Workspace(logp, torch.float64, torch.float64),
        [],
    )
    for block in row_blocks(logp):
        pull, counted = space.of(block)
        counted.copy_(mask[block].bool())
        if old is None:
            pull.fill_(1.0).masked_fill_(~logp[block].isfinite(), 0.0)
        else:
            pull.copy_(logp[block]).sub_(old[block]).exp_()
            if clip is not None:
                counted.logical_and_(~_clipped(pull, pulls[block], *clip))
        if cap is not None:
            pull.clamp_(max=cap)
        pull.mul_(pulls[block]).mul_(by_rows(weights, block))
        flat = pull.mul_(counted).view(-1)
        total = flat.dot(flat)
        if not reduction.on_host(total) or math.isnan(total.item()):
            # NaN, also from 0 * inf, means that this token's pull is not known or does not count
            flat.masked_fill_(flat.isnan(), 0.0)
            total = flat.dot(flat)
        rows.append(total)
    return Reduction(parts=(stack(rows) if rows else logp.new_zeros(0, dtype=torch.float64),), build=build)


def _clipped(ratio: Tensor, advantages: Tensor, low: float, high: float) -> Tensor:
    """Where the pessimistic minimum of the clipped and the unclipped term has no gradient."""
    beyond: Tensor = ((ratio > 1.0 + high) & (advantages > 0)) | ((ratio < 1.0 - low) & (advantages < 0))
    return beyond


def loss_tokens(mask: Tensor, build: Callable[[Sequence[Floats]], Tally]) -> Reduction:
    """Tokens under the mask, one number."""
    return Reduction(parts=(tokens_by_row(mask).sum().double().view(1),), build=build)


def forced(
    chosen: Tensor, mask: Tensor, ids: Tensor, vocabulary: int | None, build: Callable[[Floats, IdSums], Tally]
) -> Reduction:
    """(tokens, flat index, id) of those under the mask that were not chosen, a row a block; and how many by id."""
    table, rows = IdTable(ids, vocabulary), []
    for block in row_blocks(mask):
        found = (mask[block] != 0) & (chosen[block] == 0)
        count = found.count_nonzero()
        if reduction.on_host(found) and not count.item():
            continue
        table.add(ids[block], found.double())
        index = found.reshape(-1).to(torch.uint8).argmax()
        rows.append(stack([count, index + block.start * mask.shape[1], at(ids[block], index)]))
    first = torch.cat(rows) if rows else torch.zeros(0, dtype=torch.float64, device=mask.device)
    return Reduction(parts=(first, table.part()), build=partial(_forced, build, table.build))


def _forced(
    build: Callable[[Floats, IdSums], Tally], by_id: Callable[[Floats], IdSums], parts: Sequence[Floats]
) -> Tally:
    return build(parts[0], by_id(parts[1]))
