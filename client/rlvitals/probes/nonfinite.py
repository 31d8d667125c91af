"""The census of NaN, +Inf and -Inf: under the loss mask an alert, outside it a notice.

A -Inf log-prob (top-p with processed log-probs, a vocabulary mask) counts like a NaN and stays out of every sum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rlvitals.contract.report import Extreme
from rlvitals.probes.arrays import Floats, floats
from rlvitals.probes.reduction import Reduction, at, stack
from rlvitals.probes.tally import Tally

KINDS = ("nan", "positive", "negative")
WITNESS = "numerics.nonfinite_logprobs"


def tally_nonfinite(
    *,
    loss: Any = None,
    logp: Tensor | None = None,
    ref: Tensor | None = None,
    old: Tensor | None = None,
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
        tally += _census("loss", floats(loss))
    if advantages is not None:
        tally += _census("advantages", floats(advantages))
    logprobs = {name: value for name, value in (("logp", logp), ("ref", ref), ("old", old)) if value is not None}
    if logprobs:
        tally += measure_nonfinite(logprobs, mask, ids=ids, sample_offset=sample_offset).tally()
    return tally


def measure_nonfinite(
    logprobs: Mapping[str, Tensor], mask: Tensor | None, *, ids: Tensor | None = None, sample_offset: int = 0
) -> Reduction:
    """Launches the counts of ``logprobs`` (name → (B, T)) and returns at once; without a mask all tokens count."""
    parts = []
    for value in logprobs.values():
        values = value.detach()
        if not values.is_cuda and bool(values.sum().isfinite()):
            parts.append(torch.zeros(7, dtype=torch.float64))  # a finite sum has no non-finite term
            continue
        trained = mask.detach() != 0 if mask is not None else torch.ones_like(values, dtype=torch.bool)
        bad = ~values.isfinite()
        seen = bad & trained
        index = seen.reshape(-1).to(torch.uint8).argmax()
        parts.append(
            stack(
                [
                    (values.isnan() & trained).sum(),
                    (values.isposinf() & trained).sum(),
                    (values.isneginf() & trained).sum(),
                    (bad & ~trained).sum(),
                    index,
                    at(ids, index) if ids is not None else torch.full_like(index, -1),
                    at(values, index),
                ]
                if values.numel()
                else [torch.zeros((), device=values.device)] * 7
            )
        )
    width = next(iter(logprobs.values())).shape[1]
    return Reduction(parts=tuple(parts), build=partial(_build, tuple(logprobs), width, sample_offset))


def _build(names: Sequence[str], width: int, sample_offset: int, parts: Sequence[Floats]) -> Tally:
    tally = Tally.zero()
    for name, part in zip(names, parts, strict=True):
        nan, positive, negative, padding, index, token, value = part.tolist()
        tally += _counts(name, (int(nan), int(positive), int(negative)))
        tally += Tally(counts={"nonfinite.padding": int(padding)})
        if nan or positive or negative:
            row, position = divmod(int(index), width)
            first = Extreme(
                value=value,
                token_id=int(token) if token >= 0 else None,
                position=position,
                sample=row + sample_offset,
                masked=False,
            )
            tally += Tally(firsts={WITNESS: first})
    return tally


def _census(what: str, values: Floats) -> Tally:
    return _counts(
        what, (int(np.isnan(values).sum()), int(np.isposinf(values).sum()), int(np.isneginf(values).sum()))
    )


def _counts(what: str, found: tuple[int, int, int]) -> Tally:
    apart = {f"nonfinite.{what}.{kind}": n for kind, n in zip(KINDS, found, strict=True)}
    return Tally(counts={f"nonfinite.{what}": sum(found), **apart})
