"""Importance ratios of the sampled token, r = exp(above - below), under the loss mask.

Three of them: new over old (what the loss clips), old over rollout (trainer against sampler, for the same weights)
and policy over reference. All sums are of ``e = r - 1`` in double precision, which keeps the digits where all
ratios are near 1, as they are in a healthy step. Tensors are summed where they are (`ratios_torch`), arrays
without torch (`ratios_numpy`); both give the same Tally.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from rlvitals.contract.report import Extreme
from rlvitals.probes.arguments import (
    check_at_least,
    check_floating,
    check_ids,
    check_per_row,
    check_same_device,
    check_tokens,
)
from rlvitals.probes.arrays import Floats, is_tensor
from rlvitals.probes.log_bins import RATIO_BINS
from rlvitals.probes.place import Place
from rlvitals.probes.tally import Tally
from rlvitals.probes.uncompiled import uncompiled

if TYPE_CHECKING:
    from torch import Tensor

    from rlvitals.probes.reduction import Reduction

_SHARED = ("max", "min", "log_abs_p999", "ess", "beyond_count")
METRICS = (
    *(f"ratio.{name}" for name in _SHARED),
    "ratio.clip_low_share",
    "ratio.clip_high_share",
    "ratio.clip_share",
    "ratio.approx_kl",
)
ROLLOUT = (
    "ratio.rollout_logp_diff",
    "ratio.rollout_prob_diff",
    *(f"ratio.rollout_{name}" for name in _SHARED),
    "ratio.rollout_approx_kl",
)
REFERENCE = tuple(f"ratio.reference_{name}" for name in _SHARED)
NO_SAMPLER = "not measured: the sampling engine returned no log-probs"
NO_OLD = "not measured: the trainer keeps no old log-probs, its ratio is 1 by construction"
NO_REFERENCE = "not measured: there are no reference log-probs"
BEYOND = 10.0
"""A ratio above it, or below one over it, is counted as beyond bounds."""
STATS = ("tokens", "excess", "excess_sq", "k3", "beyond")
"""What a block sums; behind them a kind's own, then (log r, flat index, id) of the largest and (-log r, …)."""
_CLIPS = ("ratio.clipped_low", "ratio.clipped_high")
_APART = ("rollout.difference", "rollout.probability")


def missing(names: Sequence[str] = METRICS, reason: str = NO_OLD) -> Tally:
    """Says that the ratios could not be measured: a trainer without old log-probs has none to be seen as 1."""
    return Tally.absent(tuple(names), reason)


def tally_ratios(
    logp: Any,
    old: Any,
    mask: Any,
    advantages: Any,
    ids: Any = None,
    *,
    eps_low: float,
    eps_high: float,
    beyond: float = BEYOND,
    sample_offset: int = 0,
) -> Tally:
    """Tallies the ratios of one micro-batch, of tensors (on a GPU this waits) or of arrays; see `measure_ratios`.

    Without ``old`` they are missing.
    """
    if old is None:
        return missing()
    options: dict[str, Any] = {"eps_low": eps_low, "eps_high": eps_high, "sample_offset": sample_offset}
    if is_tensor(logp):
        return measure_ratios(logp, old, mask, advantages, ids, beyond=beyond, **options).tally()
    from rlvitals.probes import ratios_numpy

    limit = _checked(beyond, ids, logp=logp, old=old, mask=mask)
    check_per_row("advantages", advantages, logp.shape)
    check_same_device(logp=logp, advantages=advantages)
    extra = partial(ratios_numpy.clipped, advantages, *log_bounds(eps_low, eps_high))
    build = partial(_build, place=Place(logp.shape[1], sample_offset), prefix="ratio.", counts=_CLIPS)
    return build(*ratios_numpy.summed(logp, old, mask, ids, beyond=limit, extra=extra))


@uncompiled
def measure_ratios(
    logp: Tensor,
    old: Tensor,
    mask: Tensor,
    advantages: Tensor,
    ids: Tensor | None = None,
    *,
    eps_low: float,
    eps_high: float,
    beyond: float = BEYOND,
    sample_offset: int = 0,
) -> Reduction:
    """Launches the sums of r = exp(logp - old) and returns at once.

    ``logp``, ``old``, ``mask``, ``ids`` (B, T) on one device, ``advantages`` (B,) or (B, T). A token counts as
    clipped below where r < 1 - eps_low and A < 0, above where r > 1 + eps_high and A > 0, and as beyond bounds
    where r > beyond or r < 1 / beyond. Tokens with a non-finite log-prob are left out (`nonfinite` counts them).

    Raises `ProbeArgumentError` naming the argument of a wrong shape, device or dtype.
    """
    from rlvitals.probes import ratios_torch
    from rlvitals.probes.nested import dense

    logp, old, mask, advantages, ids = dense(logp=logp, old=old, mask=mask, advantages=advantages, ids=ids)
    limit = _checked(beyond, ids, logp=logp, old=old, mask=mask)
    check_per_row("advantages", advantages, logp.shape)
    check_same_device(logp=logp, advantages=advantages)
    extra = partial(ratios_torch.clipped, advantages, *log_bounds(eps_low, eps_high))
    build = partial(_build, place=Place(logp.shape[1], sample_offset), prefix="ratio.", counts=_CLIPS)
    return ratios_torch.launch(logp, old, mask, ids, beyond=limit, extra=extra, build=build)


def tally_rollout(
    logp: Any, rollout: Any, mask: Any, ids: Any = None, *, beyond: float = BEYOND, sample_offset: int = 0
) -> Tally:
    """Tallies the mismatch with the sampler (see `measure_rollout`); without its log-probs it is missing."""
    if rollout is None:
        return missing(ROLLOUT, NO_SAMPLER)
    if is_tensor(logp):
        return measure_rollout(logp, rollout, mask, ids, beyond=beyond, sample_offset=sample_offset).tally()
    from rlvitals.probes import ratios_numpy

    limit = _checked(beyond, ids, logp=logp, rollout=rollout, mask=mask)
    extra = partial(ratios_numpy.apart, logp, rollout)
    build = partial(_build, place=Place(logp.shape[1], sample_offset), prefix="ratio.rollout_", sums=_APART)
    return build(*ratios_numpy.summed(logp, rollout, mask, ids, beyond=limit, extra=extra))


@uncompiled
def measure_rollout(
    logp: Tensor,
    rollout: Tensor,
    mask: Tensor,
    ids: Tensor | None = None,
    *,
    beyond: float = BEYOND,
    sample_offset: int = 0,
) -> Reduction:
    """Launches the sums of trainer against sampler, of log-probs and of probabilities, for the same weights.

    All (B, T) on one device. Tokens for which either gave no finite log-prob are left out.
    """
    from rlvitals.probes import ratios_torch
    from rlvitals.probes.nested import dense

    logp, rollout, mask, ids = dense(logp=logp, rollout=rollout, mask=mask, ids=ids)
    limit = _checked(beyond, ids, logp=logp, rollout=rollout, mask=mask)
    extra = ratios_torch.Apart(logp, rollout)
    build = partial(_build, place=Place(logp.shape[1], sample_offset), prefix="ratio.rollout_", sums=_APART)
    return ratios_torch.launch(logp, rollout, mask, ids, beyond=limit, extra=extra, build=build)


def tally_reference(
    logp: Any, ref: Any, mask: Any, ids: Any = None, *, beyond: float = BEYOND, sample_offset: int = 0
) -> Tally:
    """Tallies policy over reference (see `measure_reference`); without reference log-probs it is missing."""
    if ref is None:
        return missing(REFERENCE, NO_REFERENCE)
    if is_tensor(logp):
        return measure_reference(logp, ref, mask, ids, beyond=beyond, sample_offset=sample_offset).tally()
    from rlvitals.probes import ratios_numpy

    limit = _checked(beyond, ids, logp=logp, ref=ref, mask=mask)
    build = partial(_build, place=Place(logp.shape[1], sample_offset), prefix="ratio.reference_")
    return build(*ratios_numpy.summed(logp, ref, mask, ids, beyond=limit, extra=None))


@uncompiled
def measure_reference(
    logp: Tensor,
    ref: Tensor,
    mask: Tensor,
    ids: Tensor | None = None,
    *,
    beyond: float = BEYOND,
    sample_offset: int = 0,
) -> Reduction:
    """Launches the sums of r = exp(logp - ref); arguments as `measure_rollout`."""
    from rlvitals.probes import ratios_torch
    from rlvitals.probes.nested import dense

    logp, ref, mask, ids = dense(logp=logp, ref=ref, mask=mask, ids=ids)
    limit = _checked(beyond, ids, logp=logp, ref=ref, mask=mask)
    build = partial(_build, place=Place(logp.shape[1], sample_offset), prefix="ratio.reference_")
    return ratios_torch.launch(logp, ref, mask, ids, beyond=limit, extra=None, build=build)


def log_bounds(eps_low: float, eps_high: float) -> tuple[float, float]:
    """The clip range in log ratios."""
    check_at_least("eps_low", eps_low, 0)
    check_at_least("eps_high", eps_high, 0)
    return math.log1p(-eps_low) if eps_low < 1 else -math.inf, math.log1p(eps_high)


def _checked(beyond: float, ids: Any, *, mask: Any, **logprobs: Any) -> float:
    """The largest |log r| within bounds."""
    check_tokens(**logprobs, mask=mask, ids=ids)
    check_floating(**logprobs)
    check_ids("ids", ids)
    check_at_least("beyond", beyond, 1.0)
    return math.log(beyond)


def _build(
    stats: Floats,
    bins: Floats,
    elements: int,
    *,
    place: Place,
    prefix: str,
    counts: tuple[str, ...] = (),
    sums: tuple[str, ...] = (),
) -> Tally:
    own = (*counts, *sums)
    rows = stats.reshape(-1, len(STATS) + len(own) + 6)
    tokens, excess, excess_sq, k3, beyond, *others = rows[:, :-6].sum(axis=0).tolist()
    apart = dict(zip(own, others, strict=True))
    tally = Tally(
        counts={
            f"{prefix}tokens": int(tokens),
            f"{prefix}beyond": int(beyond),
            **{n: int(apart[n]) for n in counts},
        },
        sums={
            f"{prefix}excess": excess,
            f"{prefix}excess_sq": excess_sq,
            # e and log r round where r is next to 1; their difference is never negative
            f"{prefix}k3": max(k3, 0.0),
            **{n: apart[n] for n in sums},
        },
    )
    if not tokens:
        return tally
    largest, least = place.extreme(rows[:, -6:-3]), place.extreme(rows[:, -3:])
    # tokens that do not count were taken as a ratio of 1, which lies below the sketch
    sketch = RATIO_BINS.sketch(bins.tolist(), elements - int(tokens))
    log_abs = max(abs(largest.value), abs(least.value))
    return tally + Tally(
        maxima={f"{prefix}max": _ratio(largest, 1), f"{prefix}log_abs": Extreme(value=log_abs)},
        minima={f"{prefix}min": _ratio(least, -1)},
        sketches={f"{prefix}log_abs": sketch},
    )


def _ratio(extreme: Extreme, sign: int) -> Extreme:
    try:
        return replace(extreme, value=math.exp(sign * extreme.value))
    except OverflowError:
        return replace(extreme, value=math.inf)
