"""The census of NaN, +Inf and -Inf: under the loss mask an alert, outside it a notice.

A -Inf log-prob (top-p with processed log-probs, a vocabulary mask) counts like a NaN and stays out of every sum.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rlvitals.contract.report import Extreme
from rlvitals.probes.arguments import check_ids, check_tokens
from rlvitals.probes.arrays import Floats, floats
from rlvitals.probes.nested import dense
from rlvitals.probes.reduction import Reduction, at, on_host, row_blocks, stack
from rlvitals.probes.tally import Tally
from rlvitals.probes.uncompiled import uncompiled

KINDS = ("nan", "positive", "negative")
WITNESS, ROLLOUT = "numerics.nonfinite_logprobs", "numerics.nonfinite_rollout"


@uncompiled
def tally_nonfinite(
    *,
    loss: Any = None,
    logp: Tensor | None = None,
    ref: Tensor | None = None,
    old: Tensor | None = None,
    rollout: Tensor | None = None,
    advantages: Any = None,
    mask: Tensor | None = None,
    ids: Tensor | None = None,
    sample_offset: int = 0,
) -> Tally:
    """Counts the non-finite values of one micro-batch; None = there is no such quantity, nothing is counted.

    ``loss`` one number or several, ``advantages`` (B,) or (B, T), the log-probs, ``mask`` and ``ids`` (B, T). NaN,
    +Inf and -Inf are also counted apart, as ``nonfinite.<what>.nan | positive | negative``. The first of the bad
    log-probs under the mask is kept with its token. On a GPU this waits (see `measure_nonfinite`).
    """
    tally = Tally.zero()
    if loss is not None:
        tally += census("loss", floats(loss))
    if advantages is not None:
        tally += census("advantages", floats(advantages))
    given = (("logp", logp), ("ref", ref), ("old", old), ("rollout", rollout))
    logprobs = {name: value for name, value in given if value is not None}
    if logprobs:
        tally += measure_nonfinite(logprobs, mask, ids=ids, sample_offset=sample_offset).tally()
    return tally


@uncompiled
def measure_nonfinite(
    logprobs: Mapping[str, Tensor], mask: Tensor | None, *, ids: Tensor | None = None, sample_offset: int = 0
) -> Reduction:
    """Launches the counts of ``logprobs`` (logp, ref, old, rollout → (B, T)) and returns at once.

    Without a mask all tokens count. What the sampler reported (rollout) is counted apart from the trainer's own.
    Raises ShapeError, DeviceError or DtypeError naming the argument.
    """
    names = tuple(logprobs)
    *values, mask, ids = dense(**logprobs, mask=mask, ids=ids)
    check_tokens(**dict(zip(names, values, strict=True)), mask=mask, ids=ids)
    check_ids("ids", ids)
    width = values[0].shape[1] if values else 0
    return Reduction(
        parts=tuple(counted(value, mask, ids) for value in values),
        build=partial(build, names, width, sample_offset),
    )


def counted(values: Tensor, mask: Tensor | None, ids: Tensor | None) -> Tensor:
    """Seven numbers a block: NaN, +Inf, -Inf, outside the mask; flat index, id and value of the first under it."""
    rows = []
    for block in row_blocks(values):
        part = values[block]
        # a finite sum has no non-finite term
        if on_host(part) and math.isfinite(part.sum().item()):
            continue
        bad = ~part.isfinite()
        seen = bad & (mask[block] != 0) if mask is not None else bad
        index = seen.reshape(-1).to(torch.uint8).argmax()
        kinds = [(kind & seen).sum() for kind in (part.isnan(), part.isposinf(), part.isneginf())]
        token = at(ids[block], index) if ids is not None else torch.full_like(index, -1)
        place = index + block.start * values.shape[1]
        rows.append(stack([*kinds, (bad & ~seen).sum(), place, token, at(part, index)]))
    return torch.cat(rows) if rows else torch.zeros(7, dtype=torch.float64, device=values.device)


def build(names: Sequence[str], width: int, sample_offset: int, parts: Sequence[Floats]) -> Tally:
    """The census of what `counted` made of each of ``names``."""
    tally = Tally.zero()
    for name, part in zip(names, parts, strict=True):
        rows = part.reshape(-1, 7)
        nan, positive, negative, padding = rows[:, :4].sum(axis=0).tolist()
        tally += _counts(name, (int(nan), int(positive), int(negative)))
        tally += Tally(counts={"nonfinite.padding": int(padding)})
        if nan or positive or negative:
            index, token, value = rows[int(rows[:, :3].any(axis=1).argmax()), 4:].tolist()
            row, position = divmod(int(index), width)
            first = Extreme(
                value=value,
                token_id=int(token) if token >= 0 else None,
                position=position,
                sample=row + sample_offset,
                masked=False,
            )
            tally += Tally(firsts={ROLLOUT if name == "rollout" else WITNESS: first})
    return tally


def census(what: str, values: Floats) -> Tally:
    """NaN, +Inf and -Inf among ``values`` of any shape, apart and together, as ``nonfinite.<what>``."""
    return _counts(
        what, (int(np.isnan(values).sum()), int(np.isposinf(values).sum()), int(np.isneginf(values).sum()))
    )


def _counts(what: str, found: tuple[int, int, int]) -> Tally:
    apart = {f"nonfinite.{what}.{kind}": n for kind, n in zip(KINDS, found, strict=True)}
    return Tally(counts={f"nonfinite.{what}": sum(found), **apart})
