"""The sums of `kl` where the tensors are, in cache-sized blocks, without waiting on a GPU."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor

from rlvitals.probes.arrays import Floats
from rlvitals.probes.differences_torch import Block, by_rows, differences
from rlvitals.probes.id_sums import IdSums
from rlvitals.probes.kl_form import CAP, Form, k3
from rlvitals.probes.reduction import IdTable, Reduction, per_token, stack
from rlvitals.probes.tally import Tally


def launch(
    logp: Tensor,
    ref: Tensor,
    mask: Tensor,
    weight: Tensor,
    *,
    form: Form,
    ids: Tensor | None,
    vocabulary: int | None,
    build: Callable[[Floats, IdSums | None, float], Tally],
) -> Reduction:
    """Launches the sums; ``build`` takes their rows, the sums by id and the largest d whose exp is finite."""
    weights, rows = per_token(weight), []
    table = IdTable(ids, vocabulary) if ids is not None else None
    overflow = math.log(torch.finfo(torch.promote_types(logp.dtype, ref.dtype)).max)
    for block in differences(ref, logp, mask, ids):
        total_abs = torch.abs(block.difference, out=block.scratch).sum()
        growth = torch.exp(block.difference, out=block.scratch).sub_(1.0)
        sums, dead = _values(form, block, growth, total_abs)
        sums.append(_poisoned(form, block, overflow))
        squares = _slope(form, block, growth)
        squares *= squares
        if table is not None and ids is not None:
            table.add(ids[block.rows], squares)
        by_row = squares.sum(1, keepdim=True)
        sums.append(by_row.sum())
        if dead is not None:
            by_row = squares.masked_fill_(dead, 0.0).sum(1, keepdim=True)
        sums.append(_pull(squares, by_row, by_rows(weights, block.rows)))
        rows += [stack(sums), *block.peaks]
    stats = torch.cat(rows) if rows else logp.new_zeros(0, dtype=torch.float64)
    parts = (stats, table.part()) if table else (stats,)
    return Reduction(parts=parts, build=partial(_built, build, overflow, table.build if table else None))


def _built(
    build: Callable[[Floats, IdSums | None, float], Tally],
    overflow: float,
    by_id: Callable[[Floats], IdSums] | None,
    parts: Sequence[Floats],
) -> Tally:
    return build(parts[0], by_id(parts[1]) if by_id is not None else None, overflow)


def _values(form: Form, block: Block, growth: Tensor, total_abs: Tensor) -> tuple[list[Tensor], Tensor | None]:
    """`kl.STATS` up to the value in the loss, and which tokens a clamp lets go of (None where it is none).

    ``growth`` is exp(d) - 1. A d of 0 adds nothing.
    """
    distance, ends = block.difference, (block.low, block.high)
    flat, total = distance.view(-1), block.total
    k1, k2, full = -total, flat.dot(flat) / 2, growth.sum() - total
    none = torch.zeros_like(total)
    beyond, capped, dead, gone = none, full, None, none
    if max(map(k3, ends)) > CAP:
        each = growth - distance
        far = each > CAP
        beyond, capped = far.count_nonzero(), each.clamp_max_(CAP).sum()
        if form.lets_go and form.estimator == "k3":
            dead, gone = far, beyond
    value = {"k1": k1, "k2": k2, "abs": total_abs}.get(form.estimator, capped if form.clamped else full)
    if form.clamped and form.estimator in ("k1", "k2", "abs") and max(abs(form.value(d)) for d in ends) > CAP:
        each = _each(form, distance)
        dead = each.abs() > CAP
        gone, value = dead.count_nonzero(), each.clamp_(-CAP, CAP).sum()
    return [block.tokens, beyond, gone, k1, k2, full, total_abs, capped, value], dead


def _each(form: Form, distance: Tensor) -> Tensor:
    if form.estimator == "k2":
        return distance.square().div_(2)
    return distance.abs() if form.estimator == "abs" else -distance


def _poisoned(form: Form, block: Block, overflow: float) -> Tensor:
    if not form.poisonous or block.high <= overflow:
        return torch.zeros((), dtype=torch.float64, device=block.difference.device)
    return (block.difference > overflow).count_nonzero()


def _slope(form: Form, block: Block, growth: Tensor) -> Tensor:
    """The derivative but for its sign, in the buffer of ``growth``; 0 where a token does not count."""
    if form.estimator == "k3":
        return growth
    if form.estimator == "abs":
        return torch.sign(block.difference, out=growth)
    return growth.copy_(block.counted if form.estimator == "k1" else block.difference)


def _pull(squares: Tensor, by_row: Tensor, weight: Tensor) -> Tensor:
    """Sum of (w k')^2 from k'^2, by rows where a row has one weight.

    A weight of 0 pulls nothing, even where the derivative overflows.
    """
    each = by_row if weight.shape[1] == 1 else squares
    return (weight.double().square() * each).masked_fill_(weight == 0, 0.0).sum()
