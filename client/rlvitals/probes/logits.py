"""A few positions of the logits: how wide they spread, which token owns the extreme, what is not finite.

All logits of a step are too many to look at; what goes wrong with them (overflow, a runaway token, NaN in the
head) shows at any position.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rlvitals.contract.report import Extreme
from rlvitals.probes.arguments import ShapeError, check_at_least, check_floating, check_same_device, told, written
from rlvitals.probes.arrays import Floats, is_tensor
from rlvitals.probes.census import KINDS
from rlvitals.probes.reduction import Reduction
from rlvitals.probes.tally import Tally
from rlvitals.probes.uncompiled import uncompiled

POSITIONS = 64
# elements looked at together: their doubles are the only copies that are made
_BLOCK = 1 << 20
_COLUMNS = 12


def tally_logits(
    logits: Any, mask: Any = None, *, positions: int = POSITIONS, seed: int = 0, sample_offset: int = 0
) -> Tally:
    """As `measure_logits`, of tensors or arrays; on a GPU this waits."""
    values = logits if is_tensor(logits) else torch.as_tensor(logits)
    chosen = mask if mask is None or is_tensor(mask) else torch.as_tensor(mask)
    return measure_logits(values, chosen, positions=positions, seed=seed, sample_offset=sample_offset).tally()


@uncompiled
def measure_logits(
    logits: Tensor,
    mask: Tensor | None = None,
    *,
    positions: int = POSITIONS,
    seed: int = 0,
    sample_offset: int = 0,
) -> Reduction:
    """Launches the probe of ``logits`` (B, T, V) at ``positions`` tokens under ``mask`` (B, T); returns at once.

    The positions lie evenly over the tokens; where the first lies follows from ``seed`` alone (give the step). The
    spread is that within a position, since a shift of a row changes nothing. Non-finite logits are counted and
    left out. Raises `ShapeError` or `DtypeError` naming the argument.
    """
    if logits.is_nested or logits.dim() != 3:
        raise ShapeError("logits", "(B, T, V)", told(logits))
    check_floating(logits=logits)
    check_at_least("positions", positions, 1)
    if mask is not None and (mask.is_nested or mask.shape != logits.shape[:2]):
        raise ShapeError("mask", written(logits.shape[:2]), told(mask))
    check_same_device(logits=logits, mask=mask)
    values, width = logits.detach(), logits.shape[1]
    where, valid = _positions(values, mask, positions, random.Random(seed).random())
    step = max(1, _BLOCK // max(1, values.shape[2]))
    rows = [_look(values, where[start : start + step]) for start in range(0, where.numel(), step)]
    found = torch.cat(rows) if rows else values.new_zeros((0, _COLUMNS - 2), dtype=torch.float64)
    part = torch.cat([torch.stack([where, valid], 1).double(), found], 1)
    return Reduction(parts=(part.reshape(-1),), build=partial(_build, width, sample_offset))


def _positions(values: Tensor, mask: Tensor | None, wanted: int, phase: float) -> tuple[Tensor, Tensor]:
    """Flat indices of evenly spread tokens, and which of these there are (fewer tokens than wanted)."""
    tokens = values.shape[0] * values.shape[1]
    if not tokens or not values.shape[2]:
        nothing = torch.zeros(0, dtype=torch.long, device=values.device)
        return nothing, nothing
    places = torch.arange(min(wanted, tokens), device=values.device)
    if mask is None:
        count: Tensor = torch.full((), tokens, device=values.device)
        rank = (places + phase).double() * (count / places.numel()).clamp_min(1.0).double()
        return rank.long().clamp_max(tokens - 1), torch.ones_like(places)
    running = (mask.detach() != 0).reshape(-1).cumsum(0)
    count = running[-1]
    rank = ((places + phase).double() * (count.double() / places.numel()).clamp_min(1.0)).long()
    found = torch.searchsorted(running, rank + 1).clamp_max(tokens - 1)
    return found, (rank < count).long()


def _look(values: Tensor, where: Tensor) -> Tensor:
    """(n, 10) of n positions: finite logits, squared deviations, least with id, greatest with id, three kinds of
    non-finite ones, and the first of these."""
    width = values.shape[1]
    rows = values[torch.div(where, width, rounding_mode="floor"), where % width].double()
    nan, positive, negative = rows.isnan(), rows.isposinf(), rows.isneginf()
    bad = nan | positive | negative
    count = (~bad).sum(1)
    mean = rows.masked_fill(bad, 0.0).sum(1) / count.clamp_min(1)
    apart = (rows - mean[:, None]).masked_fill_(bad, 0.0).square_().sum(1)
    least, greatest = rows.masked_fill(bad, torch.inf).min(1), rows.masked_fill(bad, -torch.inf).max(1)
    first = bad.to(torch.uint8).argmax(1)
    columns = (
        (count, apart, least.values, least.indices, greatest.values, greatest.indices),
        (nan.sum(1), positive.sum(1), negative.sum(1), first),
    )
    return torch.stack([column.double() for half in columns for column in half], 1)


def _build(width: int, offset: int, parts: Sequence[Floats]) -> Tally:
    rows = parts[0].reshape(-1, _COLUMNS)
    rows = rows[rows[:, 1] > 0]
    counts, bad = rows[:, 2], rows[:, 8:11].sum(axis=1)
    tally = Tally(
        counts={
            "logit.positions": len(rows),
            "logit.values": int(counts.sum()),
            "nonfinite.logits": int(bad.sum()),
            **{f"nonfinite.logits.{kind}": int(rows[:, 8 + i].sum()) for i, kind in enumerate(KINDS)},
        },
        sums={"logit.apart_sq": float(rows[:, 3].sum())},
    )
    if bad.any():
        row = rows[bad > 0][rows[bad > 0, 0].argmin()]
        kind = (np.nan, np.inf, -np.inf)[int((row[8:11] > 0).argmax())]
        tally += Tally(firsts={"numerics.nonfinite_logits": _place(row, kind, row[11], width, offset)})
    there = rows[counts > 0]
    if len(there):
        least, greatest = there[there[:, 4].argmin()], there[there[:, 6].argmax()]
        tally += Tally(
            minima={"numerics.logit_min": _place(least, least[4], least[5], width, offset)},
            maxima={"numerics.logit_max": _place(greatest, greatest[6], greatest[7], width, offset)},
        )
    return tally


def _place(row: Floats, value: float, token: float, width: int, offset: int) -> Extreme:
    sample, position = divmod(int(row[0]), width)
    return Extreme(value=float(value), token_id=int(token), position=position, sample=sample + offset)
