"""Advantages where they are: one pass on the device, nothing waits."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor

from rlvitals.contract.report import Extreme
from rlvitals.probes.arguments import ShapeError, check_floating, check_same_device, check_same_shape, told
from rlvitals.probes.arrays import Floats
from rlvitals.probes.census import KINDS
from rlvitals.probes.groups import ADVANTAGE_IN_EQUAL
from rlvitals.probes.nested import dense
from rlvitals.probes.reduction import Reduction, at, moved, stack
from rlvitals.probes.tally import Tally
from rlvitals.probes.uncompiled import uncompiled


@uncompiled
def measure_advantages(
    advantages: Tensor, *, equal: Tensor | None = None, mask: Tensor | None = None, sample_offset: int = 0
) -> Reduction:
    """Launches what `groups.tally_advantages` counts, and the census of non-finite advantages; returns at once.

    ``advantages`` (B,) or (B, T), ``equal`` (B,) whether the rewards of the completion's group are all equal,
    ``mask`` of the advantages' shape. Raises `ShapeError` or `DtypeError` naming the argument.
    """
    advantages, mask = dense(advantages=advantages, mask=mask)
    check_floating(advantages=advantages)
    check_same_shape(advantages=advantages, mask=mask)
    check_same_device(advantages=advantages, mask=mask)
    if not 1 <= advantages.dim() <= 2:
        raise ShapeError("advantages", "(B,) or (B, T)", told(advantages))
    if equal is not None and equal.shape != advantages.shape[:1]:
        raise ShapeError("equal", f"({advantages.shape[0]},)", told(equal))
    values = advantages.detach()
    counted = torch.ones_like(values, dtype=torch.bool) if mask is None else mask.detach() != 0
    finite = values.isfinite() & counted
    row = [finite.sum(), ((values == 0) & finite).sum()]
    row += [
        (values.isnan() & counted).sum(),
        (values.isposinf() & counted).sum(),
        (values.isneginf() & counted).sum(),
    ]
    row += _largest(values, finite)
    if equal is not None:
        inside = finite & (moved(equal, values.device) != 0).view(-1, *[1] * (values.dim() - 1))
        row += [inside.sum(), *_largest(values, inside)]
    width = values.shape[1] if values.dim() == 2 else None
    return Reduction(parts=(stack(row),), build=partial(_build, width, sample_offset))


def _largest(values: Tensor, among: Tensor) -> list[Tensor]:
    """[|A|, flat index] of the largest, |A| negative where there is none."""
    if not values.numel():
        return [torch.full((), -1.0, device=values.device), torch.zeros((), device=values.device)]
    flat = values.abs().masked_fill_(~among, -1.0).reshape(-1)
    index = flat.argmax()
    return [at(flat, index), index]


def _build(width: int | None, offset: int, parts: Sequence[Floats]) -> Tally:
    seen, zero, nan, positive, negative, largest, index, *inside = parts[0].tolist()
    kinds = zip(KINDS, (nan, positive, negative), strict=True)
    counts = {
        "advantage.seen": int(seen),
        "advantage.zero": int(zero),
        "nonfinite.advantages": int(nan + positive + negative),
        **{f"nonfinite.advantages.{kind}": int(count) for kind, count in kinds},
    }
    maxima = _named("reward.advantage_abs_max", largest, index, width, offset)
    if inside:
        counts["advantage.equal_group"] = int(inside[0])
        maxima |= _named(ADVANTAGE_IN_EQUAL, inside[1], inside[2], width, offset)
    return Tally(counts=counts, maxima=maxima)


def _named(name: str, value: float, index: float, width: int | None, offset: int) -> dict[str, Extreme]:
    if value < 0:
        return {}
    sample, position = divmod(int(index), width) if width else (int(index), None)
    return {name: Extreme(value=value, sample=sample + offset, position=position)}
