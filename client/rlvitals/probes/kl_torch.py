"""The sums of `kl` where the tensors are, in cache-sized blocks on a CPU, without waiting on a GPU."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor

from rlvitals.probes.arrays import Floats
from rlvitals.probes.kl_form import CAP, Form, k3
from rlvitals.probes.peaks import Peaks, counted
from rlvitals.probes.reduction import (
    IdTable,
    Reduction,
    Workspace,
    difference_into,
    per_token,
    row_blocks,
    span,
    stack,
)
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
    build: Callable[..., Tally],
) -> Reduction:
    """Launches the sums; ``build`` takes their rows, the sums by id and the limit of exp."""
    policy, reference, weights = logp.detach(), ref.detach(), per_token(weight).detach()
    space, rows = Workspace(logp, torch.float64, torch.float64), []
    most, least = Peaks(logp, ids), Peaks(logp, ids)
    table = IdTable(ids, vocabulary) if ids is not None else None
    overflow = math.log(torch.finfo(torch.promote_types(logp.dtype, ref.dtype)).max)
    for block in row_blocks(logp):
        distance, scratch = space.of(block)
        unused = difference_into(distance, reference[block], policy[block], mask[block])
        low, high = span(distance)
        peaks = [
            most.of(block, high, partial(counted, distance, 1.0, unused, scratch)),
            least.of(block, -low, partial(counted, distance, -1.0, unused, scratch)),
        ]
        total_abs = torch.abs(distance, out=scratch).sum()
        growth = torch.exp(distance, out=scratch).sub_(1.0)
        sums, dead = _values(form, distance, growth, unused, total_abs, (low, high))
        poisoned = _beyond(distance, overflow) if form.poisonous and high > overflow else torch.zeros_like(sums[0])
        squares = _slope(form, distance, growth, unused)
        squares *= squares
        if table is not None and ids is not None:
            table.add(ids[block], squares)
        by_row = squares.sum(1, keepdim=True)
        raw = by_row.sum()
        if dead is not None:
            by_row = squares.masked_fill_(dead, 0.0).sum(1, keepdim=True)
        rows.append(torch.cat([stack([*sums, poisoned, raw, _pull(squares, by_row, weights, block)]), *peaks]))
    stats = torch.cat(rows) if rows else logp.new_zeros(0, dtype=torch.float64)
    parts = (stats, table.part()) if table else (stats,)
    return Reduction(
        parts=parts, build=partial(_built, build, overflow, table.build if table is not None else None)
    )


def _built(
    build: Callable[..., Tally],
    overflow: float,
    by_id: Callable[[Floats], object] | None,
    parts: Sequence[Floats],
) -> Tally:
    return build(parts[0], by_id(parts[1]) if by_id is not None else None, overflow)


def _values(
    form: Form, distance: Tensor, growth: Tensor, unused: Tensor, total_abs: Tensor, ends: tuple[float, float]
) -> tuple[list[Tensor], Tensor | None]:
    """`kl.STATS` up to the value in the loss, and which tokens a clamp lets go of (None where it is none).

    ``growth`` is exp(d) - 1, ``ends`` enclose all d. A d of 0 adds nothing.
    """
    flat, tokens = distance.view(-1), unused.numel() - unused.count_nonzero()
    total = flat.sum()
    k1, k2, full = -total, flat.dot(flat) / 2, growth.sum() - total
    beyond, capped, dead = torch.zeros_like(tokens), full, None
    if max(map(k3, ends)) > CAP:
        each = growth - distance
        far = each > CAP
        beyond, capped = far.count_nonzero(), each.clamp_max_(CAP).sum()
        dead = far if form.lets_go and form.estimator == "k3" else None
    value = {"k1": k1, "k2": k2, "abs": total_abs}.get(form.estimator, capped if form.clamped else full)
    if form.clamped and form.estimator in ("k1", "k2", "abs") and max(abs(form.value(d)) for d in ends) > CAP:
        each = distance.square().div_(2) if form.estimator == "k2" else distance.abs()
        dead = each > CAP
        signed = each if form.estimator != "k1" else -distance
        value = signed.clamp(-CAP, CAP).sum()
    gone = dead.count_nonzero() if dead is not None else torch.zeros_like(tokens)
    return [tokens, beyond, gone, k1, k2, full, total_abs, capped, value], dead


def _beyond(distance: Tensor, limit: float) -> Tensor:
    return (distance > limit).count_nonzero()


def _slope(form: Form, distance: Tensor, growth: Tensor, unused: Tensor) -> Tensor:
    """The derivative but for its sign, in the buffer of ``growth``; 0 where a token does not count."""
    if form.estimator == "k3":
        return growth
    if form.estimator == "abs":
        return torch.sign(distance, out=growth)
    if form.estimator == "k1":
        return growth.fill_(1.0).masked_fill_(unused, 0.0)
    return growth.copy_(distance)


def _pull(squares: Tensor, by_row: Tensor, weights: Tensor, block: slice) -> Tensor:
    """Sum of (w k')^2 from k'^2, by rows where a row has one weight.

    A weight of 0 pulls nothing, even where the derivative overflows.
    """
    weight = weights[block] if weights.shape[0] > 1 else weights
    each = by_row if weight.shape[1] == 1 else squares
    return (weight.double().square() * each).masked_fill_(weight == 0, 0.0).sum()
