"""Importance ratio r = exp(logp - old) of the sampled token, under the loss mask (signals 1.3).

All sums are of ``e = r - 1`` in double precision, which keeps the digits where all ratios are near 1, as they are
in a healthy step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from rlvitals.contract.report import Extreme
from rlvitals.probes.arrays import Floats
from rlvitals.probes.reduction import Place, Reduction, at, per_token, row_blocks, stack
from rlvitals.probes.sketch import Sketch
from rlvitals.probes.tally import Tally

METRICS = (
    "ratio.max",
    "ratio.min",
    "ratio.log_abs_p999",
    "ratio.ess",
    "ratio.clip_low_share",
    "ratio.clip_high_share",
    "ratio.approx_kl",
)
NO_OLD = "not measured: the trainer keeps no old log-probs, its ratio is 1 by construction"
# |log ratio| in 96 log bins from 1e-4 to 100: a quantile is at most 15.5 % high
LOW, HIGH, BINS = 1e-4, 1e2, 96
_PER_DECADE = BINS / math.log10(HIGH / LOW)
_STATS = 12


def missing(names: Sequence[str] = METRICS, reason: str = NO_OLD) -> Tally:
    """Says that the ratios could not be measured: a trainer without old log-probs has none to be seen as 1."""
    return Tally.absent(tuple(names), reason)


def tally_ratios(
    logp: Tensor,
    old: Tensor | None,
    mask: Tensor,
    advantages: Tensor,
    ids: Tensor | None = None,
    *,
    eps_low: float,
    eps_high: float,
    sample_offset: int = 0,
) -> Tally:
    """Tallies the ratios of one micro-batch (see `measure_ratios`); without ``old`` they are missing."""
    if old is None:
        return missing()
    return measure_ratios(
        logp, old, mask, advantages, ids, eps_low=eps_low, eps_high=eps_high, sample_offset=sample_offset
    ).tally()


def measure_ratios(
    logp: Tensor,
    old: Tensor,
    mask: Tensor,
    advantages: Tensor,
    ids: Tensor | None = None,
    *,
    eps_low: float,
    eps_high: float,
    sample_offset: int = 0,
) -> Reduction:
    """Launches the sums and returns at once.

    ``logp``, ``old``, ``mask``, ``ids`` (B, T) on one device, ``advantages`` (B,) or (B, T). A token counts as
    clipped below where r < 1 - eps_low and A < 0, above where r > 1 + eps_high and A > 0. Tokens with a non-finite
    log-prob are left out (nonfinite.py counts them).
    """
    policy, before, pulls = logp.detach(), old.detach(), per_token(advantages).detach().expand(logp.shape)
    low, high = math.log1p(-eps_low) if eps_low < 1 else -math.inf, math.log1p(eps_high)
    counts = torch.zeros(BINS + 2, dtype=torch.float64, device=logp.device)
    rows = []
    for block in row_blocks(logp):
        log_ratio = policy[block].double() - before[block].double()
        used = (mask[block] != 0) & log_ratio.isfinite()
        log_ratio.masked_fill_(~used, 0.0)
        rows.append(
            _sums(log_ratio, used)
            + _clipped(log_ratio, pulls[block], low, high)
            + _ends(log_ratio, used, ids, block, logp.shape[1])
        )
        _count(counts, log_ratio)
    stats = torch.stack([stack(row) for row in rows]) if rows else logp.new_zeros((0, _STATS), dtype=torch.float64)
    elements = logp.numel()
    return Reduction(
        parts=(stats.reshape(-1), counts),
        build=partial(_build, place=Place(logp.shape[1], sample_offset), elements=elements),
    )


def _sums(log_ratio: Tensor, used: Tensor) -> list[Tensor]:
    excess = torch.expm1(log_ratio)
    return [used.sum(), excess.sum(), (excess * excess).sum(), (excess - log_ratio).sum()]


def _clipped(log_ratio: Tensor, pulls: Tensor, low: float, high: float) -> list[Tensor]:
    return [((log_ratio < low) & (pulls < 0)).sum(), ((log_ratio > high) & (pulls > 0)).sum()]


def _ends(log_ratio: Tensor, used: Tensor, ids: Tensor | None, block: slice, width: int) -> list[Tensor]:
    """Largest log ratio, its index and id; the same of the largest negated one. -inf where no token counts."""
    found = []
    for signed in (log_ratio, -log_ratio):
        candidates = signed.masked_fill(~used, -math.inf).reshape(-1)
        index = candidates.argmax()
        token = at(ids[block], index) if ids is not None else torch.full_like(index, -1)
        found += [candidates.max(), index + block.start * width, token]
    return found


def _count(counts: Tensor, log_ratio: Tensor) -> None:
    # single precision is enough to choose a bin; -inf (a ratio of 1) goes below
    bins = log_ratio.float().abs_().log10_().add_(-math.log10(LOW)).mul_(_PER_DECADE).floor_().clamp_(-1, BINS)
    where = bins.long().add_(1).reshape(-1)
    counts.scatter_add_(0, where, torch.ones((), dtype=counts.dtype, device=counts.device).expand(where.shape))


def _build(parts: Sequence[Floats], *, place: Place, elements: int) -> Tally:
    rows, counts = parts[0].reshape(-1, _STATS), [int(n) for n in parts[1]]
    tokens, excess, excess_sq, k3, low, high = rows[:, :6].sum(axis=0).tolist()
    tally = Tally(
        counts={"ratio.tokens": int(tokens), "ratio.clipped_low": int(low), "ratio.clipped_high": int(high)},
        sums={"ratio.excess": excess, "ratio.excess_sq": excess_sq, "ratio.k3": k3},
    )
    if not tokens:
        return tally
    largest, least = place.extreme(rows[:, 6:9]), place.extreme(rows[:, 9:12])
    # tokens that do not count were taken as a ratio of 1, which lies below the sketch
    sketch = Sketch(
        low=LOW,
        high=HIGH,
        counts=tuple(counts[1:-1]),
        below=counts[0] - (elements - int(tokens)),
        above=counts[-1],
    )
    log_abs = max(abs(largest.value), abs(least.value))
    return tally + Tally(
        maxima={"ratio.max": _ratio(largest, 1), "ratio.log_abs": Extreme(value=log_abs)},
        minima={"ratio.min": _ratio(least, -1)},
        sketches={"ratio.log_abs": sketch},
    )


def _ratio(extreme: Extreme, sign: int) -> Extreme:
    try:
        return replace(extreme, value=math.exp(sign * extreme.value))
    except OverflowError:
        return replace(extreme, value=math.inf)


def tally_rollout(logp: Tensor, rollout: Tensor | None, mask: Tensor) -> Tally:
    """Mean |trainer - sampler| log-prob for the same weights (signals 1.4); (B, T) each.

    Tokens for which the sampler gave no log-prob (NaN) are left out.
    """
    if rollout is None:
        return Tally.absent(
            ("ratio.rollout_logp_diff",), "not measured: the sampling engine returned no log-probs"
        )
    difference = (logp.detach().double() - rollout.detach().double()).abs()
    used = (mask != 0) & difference.isfinite()
    tokens, total = stack([used.sum(), difference.masked_fill(~used, 0.0).sum()]).cpu().tolist()
    return Tally(counts={"rollout.tokens": int(tokens)}, sums={"rollout.difference": total})
