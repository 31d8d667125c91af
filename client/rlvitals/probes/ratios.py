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
from rlvitals.probes.reduction import (
    Peaks,
    Place,
    Reduction,
    Workspace,
    difference_into,
    per_token,
    row_blocks,
    span,
    stack,
)
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
ROLLOUT = ("ratio.rollout_logp_diff", "ratio.rollout_prob_diff")
NO_SAMPLER = "not measured: the sampling engine returned no log-probs"
NO_OLD = "not measured: the trainer keeps no old log-probs, its ratio is 1 by construction"
# |log ratio| in 96 log bins from 1e-4 to 100: a quantile is at most 15.5 % high
LOW, HIGH, BINS = 1e-4, 1e2, 96
_PER_NAT = BINS / math.log(HIGH / LOW)
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
    policy, before, pulls = logp.detach(), old.detach(), per_token(advantages).detach()
    floor, ceiling = math.log1p(-eps_low) if eps_low < 1 else -math.inf, math.log1p(eps_high)
    space, bins, rows = Workspace(logp, torch.float64, torch.float64, torch.float32, torch.int64), _Bins(logp), []
    most, least = Peaks(logp, ids), Peaks(logp, ids)
    for block in row_blocks(logp):
        log_ratio, scratch, single, whole = space.of(block)
        unused = difference_into(log_ratio, policy[block], before[block], mask[block])
        low, high = span(log_ratio)
        sums = _sums(log_ratio, torch.exp(log_ratio, out=scratch).sub_(1.0), unused)
        clipped = _clipped(log_ratio, pulls[block], floor, ceiling) if low < floor or high > ceiling else sums[:0]
        bins.add(log_ratio, single, whole)
        rows += [
            stack(sums + (clipped or [torch.zeros_like(sums[1])] * 2)),
            most.of(block, high, partial(_known, log_ratio, 1.0, unused, scratch)),
            least.of(block, -low, partial(_known, log_ratio, -1.0, unused, scratch)),
        ]
    stats = torch.cat(rows) if rows else logp.new_zeros(0, dtype=torch.float64)
    return Reduction(
        parts=(stats, bins.part),
        build=partial(_build, place=Place(logp.shape[1], sample_offset), elements=logp.numel()),
    )


def _sums(log_ratio: Tensor, excess: Tensor, unused: Tensor) -> list[Tensor]:
    """Tokens, and the sums of e, e^2 and e - log r. A log ratio of 0 adds nothing."""
    flat, total = excess.view(-1), excess.sum()
    return [unused.numel() - unused.count_nonzero(), total, flat.dot(flat), total - log_ratio.sum()]


def _clipped(log_ratio: Tensor, pulls: Tensor, floor: float, ceiling: float) -> list[Tensor]:
    """Tokens clipped below and above; by rows where a row has one advantage."""
    below, above = log_ratio < floor, log_ratio > ceiling
    if pulls.shape[1] == 1:
        below, above = below.sum(1, keepdim=True), above.sum(1, keepdim=True)
    return [(below * (pulls < 0)).sum(), (above * (pulls > 0)).sum()]


def _known(log_ratio: Tensor, sign: float, unused: Tensor, out: Tensor) -> Tensor:
    """The log ratio with ``sign``, -inf where a token does not count."""
    return torch.mul(log_ratio, sign, out=out).masked_fill_(unused, -math.inf)


class _Bins:
    """Counts |log ratio| in the bins of the sketch, with one more bin below and one above."""

    def __init__(self, like: Tensor) -> None:
        self.part = torch.zeros(BINS + 2, dtype=torch.float64, device=like.device)
        self._one = torch.ones(1, dtype=torch.float64, device=like.device)

    def add(self, log_ratio: Tensor, single: Tensor, whole: Tensor) -> None:
        # single precision is enough to choose a bin; whatever is below the least edge goes below
        single.copy_(log_ratio).abs_().clamp_min_(LOW / 2).log_().mul_(_PER_NAT).add_(
            1.0 - math.log(LOW) * _PER_NAT
        )
        where = whole.copy_(single.clamp_(0, BINS + 1)).view(-1)
        self.part.scatter_add_(0, where, self._one.expand(where.shape))


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
    """Tallies the mismatch with the sampler (see `measure_rollout`); without its log-probs it is missing."""
    return measure_rollout(logp, rollout, mask).tally() if rollout is not None else missing(ROLLOUT, NO_SAMPLER)


def measure_rollout(logp: Tensor, rollout: Tensor, mask: Tensor) -> Reduction:
    """Launches the sums of |trainer - sampler|, of log-probs and of probabilities, for the same weights.

    All (B, T) on one device. Tokens for which either gave no finite log-prob are left out (signals 1.4).
    """
    space, rows = Workspace(logp, torch.float64), []
    for block in row_blocks(logp):
        (difference,) = space.of(block)
        trained, sampled = logp.detach()[block], rollout.detach()[block]
        unused = difference_into(difference, trained, sampled, mask[block])
        total = difference.abs_().sum()
        apart = (trained.double().exp_() - sampled.double().exp_()).abs_().masked_fill_(unused, 0.0)
        rows.append(stack([unused.numel() - unused.count_nonzero(), total, apart.sum()]))
    stats = torch.cat(rows) if rows else logp.new_zeros(0, dtype=torch.float64)
    return Reduction(parts=(stats,), build=_build_rollout)


def _build_rollout(parts: Sequence[Floats]) -> Tally:
    tokens, difference, apart = parts[0].reshape(-1, 3).sum(axis=0).tolist()
    return Tally(
        counts={"rollout.tokens": int(tokens)},
        sums={"rollout.difference": difference, "rollout.probability": apart},
    )
