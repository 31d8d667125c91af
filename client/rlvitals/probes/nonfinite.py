"""The census of NaN, +Inf and -Inf: under the loss mask an alert, outside it a notice.

A -Inf log-prob (top-p with processed log-probs, a vocabulary mask) counts like a NaN and stays out of every sum.
Tensors are looked at where they are (`nonfinite_torch`), arrays without torch (`census`); both give the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from rlvitals.probes import census as on_the_host
from rlvitals.probes.arguments import check_floating, check_ids, check_same_device, check_tokens
from rlvitals.probes.arrays import Floats, floats, is_tensor
from rlvitals.probes.census import KINDS, census
from rlvitals.probes.tally import Tally
from rlvitals.probes.uncompiled import uncompiled

if TYPE_CHECKING:
    from torch import Tensor

    from rlvitals.probes.reduction import Reduction

__all__ = [
    "KINDS",
    "census",
    "measure_nonfinite",
    "measure_nonfinite_ratios",
    "tally_nonfinite",
    "tally_nonfinite_ratios",
]

WITNESS, ROLLOUT, RATIOS = (f"numerics.nonfinite_{what}" for what in ("logprobs", "rollout", "ratios"))


@uncompiled
def tally_nonfinite(
    *,
    loss: Any = None,
    logp: Any = None,
    ref: Any = None,
    old: Any = None,
    rollout: Any = None,
    advantages: Any = None,
    mask: Any = None,
    ids: Any = None,
    sample_offset: int = 0,
) -> Tally:
    """Counts the non-finite values of one micro-batch; None = there is no such quantity, nothing is counted.

    ``loss`` one number or several, ``advantages`` (B,) or (B, T), the log-probs, ``mask`` and ``ids`` (B, T),
    tensors or arrays. NaN, +Inf and -Inf are also counted apart, as ``nonfinite.<what>.nan | positive |
    negative``. The first of the bad log-probs under the mask is kept with its token. What the sampler reported
    (rollout) is counted apart from the trainer's own. On a GPU this waits (see `measure_nonfinite`).
    """
    tally = Tally.zero()
    if loss is not None:
        tally += census("loss", floats(loss))
    if advantages is not None:
        tally += census("advantages", floats(advantages))
    given = (("logp", logp), ("ref", ref), ("old", old), ("rollout", rollout))
    logprobs = {name: value for name, value in given if value is not None}
    if not logprobs:
        return tally
    if any(map(is_tensor, logprobs.values())):
        return tally + measure_nonfinite(logprobs, mask, ids=ids, sample_offset=sample_offset).tally()
    check_same_device(**logprobs, mask=mask, ids=ids)
    arrays, mask, ids = {name: np.asarray(value) for name, value in logprobs.items()}, _array(mask), _array(ids)
    check_tokens(**arrays, mask=mask, ids=ids)
    check_floating(**arrays)
    check_ids("ids", ids)
    rows = [on_the_host.counted(value, mask, ids) for value in arrays.values()]
    return tally + _build(tuple(arrays), next(iter(arrays.values())).shape[1], sample_offset, rows)


@uncompiled
def measure_nonfinite(
    logprobs: Mapping[str, Tensor], mask: Tensor | None, *, ids: Tensor | None = None, sample_offset: int = 0
) -> Reduction:
    """Launches the counts of ``logprobs`` (logp, ref, old, rollout → (B, T)) and returns at once.

    Without a mask all tokens count. Raises ShapeError, DeviceError or DtypeError naming the argument.
    """
    from rlvitals.probes import nonfinite_torch
    from rlvitals.probes.nested import dense
    from rlvitals.probes.reduction import Reduction

    names = tuple(logprobs)
    *values, mask, ids = dense(**logprobs, mask=mask, ids=ids)
    dense_logprobs = dict(zip(names, values, strict=True))
    check_tokens(**dense_logprobs, mask=mask, ids=ids)
    check_floating(**dense_logprobs)
    check_ids("ids", ids)
    width = values[0].shape[1] if values else 0
    return Reduction(
        parts=tuple(nonfinite_torch.counted(value, mask, ids) for value in values),
        build=partial(_build, names, width, sample_offset),
    )


@uncompiled
def tally_nonfinite_ratios(logp: Any, old: Any, mask: Any, *, ids: Any = None, sample_offset: int = 0) -> Tally:
    """As `measure_nonfinite_ratios`, of tensors or arrays; on a GPU this waits."""
    if is_tensor(logp):
        return measure_nonfinite_ratios(logp, old, mask, ids=ids, sample_offset=sample_offset).tally()
    check_same_device(logp=logp, old=old, mask=mask, ids=ids)
    logp, old, mask, ids = np.asarray(logp), np.asarray(old), _array(mask), _array(ids)
    check_tokens(logp=logp, old=old, mask=mask, ids=ids)
    check_floating(logp=logp, old=old)
    check_ids("ids", ids)
    with np.errstate(invalid="ignore", over="ignore"):
        apart = (logp - old).astype(logp.dtype)
    apart = np.where(np.isneginf(apart), 0.0, np.where(apart > math.log(np.finfo(logp.dtype).max), np.inf, apart))
    return _build_ratios(logp.shape[1], sample_offset, [on_the_host.counted(apart, mask, ids)])


@uncompiled
def measure_nonfinite_ratios(
    logp: Tensor, old: Tensor, mask: Tensor | None, *, ids: Tensor | None = None, sample_offset: int = 0
) -> Reduction:
    """Launches the count of importance ratios exp(logp - old) that are not finite, (B, T); returns at once.

    As a loss computes them: in the float type of ``logp``, where exp overflows above 88.7 nats (11.1 in float16)
    though both log-probs are finite. A ratio of 0 is finite. Raises ShapeError, DeviceError or DtypeError naming
    the argument.
    """
    from rlvitals.probes import nonfinite_torch
    from rlvitals.probes.nested import dense
    from rlvitals.probes.reduction import Reduction

    logp, old, mask, ids = dense(logp=logp, old=old, mask=mask, ids=ids)
    check_tokens(logp=logp, old=old, mask=mask, ids=ids)
    check_floating(logp=logp, old=old)
    check_ids("ids", ids)
    return Reduction(
        parts=(nonfinite_torch.counted_ratios(logp, old, mask, ids),),
        build=partial(_build_ratios, logp.shape[1], sample_offset),
    )


def _build(names: Sequence[str], width: int, sample_offset: int, parts: Sequence[Floats]) -> Tally:
    tally = Tally.zero()
    for name, part in zip(names, parts, strict=True):
        witness = ROLLOUT if name == "rollout" else WITNESS
        tally += on_the_host.told(name, part, witness=witness, width=width, sample_offset=sample_offset)
    return tally


def _build_ratios(width: int, sample_offset: int, parts: Sequence[Floats]) -> Tally:
    found = on_the_host.told("ratios", parts[0], witness=RATIOS, width=width, sample_offset=sample_offset)
    # the log-probs' own census has told what lies outside the mask
    counts = {name: count for name, count in found.counts.items() if name != "nonfinite.padding"}
    return Tally(counts=counts, firsts=found.firsts)


def _array(value: Any) -> Any:
    return None if value is None else np.asarray(value)
