"""One micro-batch of verl's loss on a worker → reductions. Nothing waits for a GPU, every tensor is detached."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from rlvitals.integrations.pieces import Piece
from rlvitals.probes import nonfinite, ratios
from rlvitals.probes.arrays import Floats
from rlvitals.probes.reduction import Reduction
from rlvitals.probes.tally import Tally

BY_SEQUENCE = "not measured: this loss clips one ratio for a whole completion"
CLIPS = {"ratio.clipped_low": "ratio.clip_low_share", "ratio.clipped_high": "ratio.clip_high_share"}


def pieces(
    loss: Any, data: Mapping[str, Any], logp: Tensor, low: float, high: float, *, by_sequence: bool
) -> Iterator[Piece]:
    """``data`` are verl's columns, jagged or padded, ``logp`` (B, T) the new log-probs, ``low`` and ``high`` clip.

    Which completion a row is nobody says here: verl has shuffled them. Tokens are told by id and position.
    """
    if isinstance(loss, Tensor):
        yield "the loss", partial(_finite, loss)
    width = logp.shape[1]
    mask, old = padded(data["response_mask"], width).bool(), padded(data["old_log_probs"], width).detach()
    ids = padded(data["responses"], width) if "responses" in data else None
    advantages = padded(data["advantages"], width).detach()
    for name, value in (("logp", logp), ("old", old)):
        yield f"non-finite {name}", partial(nowhere, nonfinite.measure_nonfinite, {name: value}, mask, ids=ids)
    yield "finite ratios", partial(nowhere, nonfinite.measure_nonfinite_ratios, logp, old, mask, ids=ids)
    measure = partial(ratios.measure_ratios, logp, old, mask, advantages, ids, eps_low=low, eps_high=high)
    yield "ratios", partial(nowhere, partial(_unclipped, measure) if by_sequence else measure)


def _finite(loss: Tensor) -> Reduction:
    """Whether it is; verl logs its value."""
    return Reduction(
        parts=(loss.detach().double().reshape(-1),), build=lambda parts: nonfinite.tally_nonfinite(loss=parts[0])
    )


def padded(value: Tensor, width: int) -> Tensor:
    """(B, width) of a jagged or padded column, on its own device."""
    if value.is_nested:
        value = torch.nested.to_padded_tensor(value, 0)
    if value.shape[1] >= width:
        return value[:, :width]
    return torch.nn.functional.pad(value, (0, width - value.shape[1]))


def nowhere(measure: Any, *arguments: Any, **options: Any) -> Reduction:
    """What is found, without the number of a row."""
    found: Reduction = measure(*arguments, **options)
    return replace(found, build=partial(_without_rows, found.build))


def _without_rows(build: Any, parts: Sequence[Floats]) -> Tally:
    tally: Tally = build(parts)
    kinds = ("minima", "maxima", "firsts")
    plain = {kind: {n: replace(e, sample=None) for n, e in getattr(tally, kind).items()} for kind in kinds}
    return replace(tally, **plain)


def _unclipped(measure: Any) -> Reduction:
    found: Reduction = measure()
    return replace(found, build=partial(_without_clips, found.build))


def _without_clips(build: Any, parts: Sequence[Floats]) -> Tally:
    tally: Tally = build(parts)
    counts = {name: count for name, count in tally.counts.items() if name not in CLIPS}
    return replace(tally, counts=counts) + Tally.absent((*CLIPS.values(), "ratio.clip_share"), BY_SEQUENCE)
