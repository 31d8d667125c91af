"""Importance ratios that overflow in the trainer's float type though both log-probs are finite."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from rlvitals.probes import nonfinite
from rlvitals.probes.arguments import check_floating, check_tokens
from rlvitals.probes.arrays import Floats
from rlvitals.probes.nested import dense
from rlvitals.probes.reduction import Reduction, on_host, row_blocks
from rlvitals.probes.tally import Tally
from rlvitals.probes.uncompiled import uncompiled

WITNESS = "numerics.nonfinite_ratios"


def tally_nonfinite_ratios(
    logp: Tensor, old: Tensor, mask: Tensor | None, *, ids: Tensor | None = None, sample_offset: int = 0
) -> Tally:
    """As `measure_nonfinite_ratios`; on a GPU this waits."""
    return measure_nonfinite_ratios(logp, old, mask, ids=ids, sample_offset=sample_offset).tally()


@uncompiled
def measure_nonfinite_ratios(
    logp: Tensor, old: Tensor, mask: Tensor | None, *, ids: Tensor | None = None, sample_offset: int = 0
) -> Reduction:
    """Launches the count of importance ratios exp(logp - old) that are not finite, (B, T); returns at once.

    As a loss computes them: in the float type of ``logp``, where exp overflows above 88.7 nats (11.1 in float16).
    A ratio of 0 is finite. Raises `ShapeError`, `DeviceError` or `DtypeError` naming the argument.
    """
    logp, old, mask, ids = dense(logp=logp, old=old, mask=mask, ids=ids)
    check_tokens(logp=logp, old=old, mask=mask, ids=ids)
    check_floating(logp=logp, old=old)
    limit = math.log(torch.finfo(logp.dtype).max)
    if on_host(logp) and all(_harmless(logp[block], old[block], limit) for block in row_blocks(logp)):
        part = torch.zeros(7, dtype=torch.float64)
    else:
        apart = (logp - old).to(logp.dtype)
        ratios = apart.masked_fill(apart > limit, torch.inf).masked_fill_(apart.isneginf(), 0.0)
        part = nonfinite.counted(ratios, mask, ids)
    return Reduction(parts=(part,), build=partial(_build, logp.shape[1], sample_offset))


def _harmless(logp: Tensor, old: Tensor, limit: float) -> bool:
    """Says no where a NaN is among them, too."""
    return bool((logp - old).max() <= limit) if logp.numel() else True


def _build(width: int, sample_offset: int, parts: Sequence[Floats]) -> Tally:
    found = nonfinite.build(("ratios",), width, sample_offset, parts)
    counts = {name: count for name, count in found.counts.items() if name != "nonfinite.padding"}
    return replace(found, counts=counts, firsts=dict(zip((WITNESS,), found.firsts.values(), strict=False)))
