"""Advantages where they are: one pass on the device, nothing waits."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor

from rlvitals.contract.report import Extreme
from rlvitals.probes.arguments import ShapeError, check_floating, check_same_device, check_same_shape, told
from rlvitals.probes.arrays import Floats
from rlvitals.probes.census import counts
from rlvitals.probes.groups import ADVANTAGE_IN_EQUAL
from rlvitals.probes.nested import dense
from rlvitals.probes.reduction import Reduction, at, moved, per_token, row_blocks, stack
from rlvitals.probes.tally import Tally
from rlvitals.probes.uncompiled import uncompiled

_COLUMNS = 7


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
    inside = None if equal is None else moved(equal, values.device)
    rows = [
        _count(
            values[block],
            None if mask is None else mask[block],
            None if inside is None else inside[block],
            block.start * (values.shape[1] if values.dim() == 2 else 1),
        )
        for block in row_blocks(per_token(values))
    ]
    columns = _COLUMNS if equal is None else _COLUMNS + 3
    part = torch.cat(rows) if rows else torch.zeros(0, dtype=torch.float64, device=values.device)
    width = values.shape[1] if values.dim() == 2 else None
    return Reduction(parts=(part,), build=partial(_build, columns, width, sample_offset))


def _count(values: Tensor, mask: Tensor | None, equal: Tensor | None, start: int) -> Tensor:
    """Finite ones, zeros, NaN, +Inf, -Inf, largest |A| and its flat index; and the same of all-equal groups."""
    nan, positive, negative = values.isnan(), values.isposinf(), values.isneginf()
    finite = values.isfinite()
    if mask is not None:
        trained = mask != 0
        nan, positive, negative, finite = (kind & trained for kind in (nan, positive, negative, finite))
    row = [finite.sum(), ((values == 0) & finite).sum(), nan.sum(), positive.sum(), negative.sum()]
    row += _largest(values, finite, start)
    if equal is not None:
        inside = finite & (equal != 0).view(-1, *[1] * (values.dim() - 1))
        row += [inside.sum(), *_largest(values, inside, start)]
    return stack(row)


def _largest(values: Tensor, among: Tensor, start: int) -> list[Tensor]:
    """[|A|, flat index] of the largest, |A| negative where there is none."""
    flat = values.abs().masked_fill_(~among, -1.0).reshape(-1)
    index = flat.argmax()
    return [at(flat, index), index + start]


def _build(columns: int, width: int | None, offset: int, parts: Sequence[Floats]) -> Tally:
    rows = parts[0].reshape(-1, columns)
    seen, zero, *kinds = (int(count) for count in rows[:, :5].sum(axis=0))
    tally = counts("advantages", kinds) + Tally(
        counts={"advantage.seen": seen, "advantage.zero": zero},
        maxima=_named("reward.advantage_abs_max", rows[:, 5:7], width, offset),
    )
    if columns == _COLUMNS:
        return tally
    return tally + Tally(
        counts={"advantage.equal_group": int(rows[:, 7].sum())},
        maxima=_named(ADVANTAGE_IN_EQUAL, rows[:, 8:10], width, offset),
    )


def _named(name: str, found: Floats, width: int | None, offset: int) -> dict[str, Extreme]:
    """``found`` are (|A|, flat index) of each block."""
    if not found.size or found[:, 0].max() < 0:
        return {}
    value, index = found[int(found[:, 0].argmax())].tolist()
    sample, position = divmod(int(index), width) if width else (int(index), None)
    return {name: Extreme(value=value, sample=sample + offset, position=position)}
