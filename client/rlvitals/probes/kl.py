"""KL to the reference and its gradient with respect to the log-probs, in closed form (signals 1.2).

With ``d = ref - logp`` of the sampled token, in natural logarithms and double precision, unclamped:

==========  ================  ==========================
estimator   value             derivative by logp
==========  ================  ==========================
k1          -d                1
k2          d * d / 2         -d
k3          exp(d) - 1 - d    1 - exp(d)
==========  ================  ==========================

(Schulman, "Approximating KL Divergence", 2020.) One token far below the reference can own the whole sum, and
exp(d) may overflow to +Inf: that is the metric's true value and is reported with its token.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor

from rlvitals.contract.report import Extreme
from rlvitals.probes.arrays import Floats
from rlvitals.probes.id_sums import IdSums
from rlvitals.probes.reduction import (
    IdTable,
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
from rlvitals.probes.tally import Tally

ESTIMATORS = ("k1", "k2", "k3")
CAP = 10.0
METRICS = (
    "kl.k1",
    "kl.k2",
    "kl.k3",
    "kl.capped",
    "kl.clamped_share",
    "kl.grad_norm",
    "kl.grad_l2",
    "kl.grad_rms",
    "kl.grad_max",
    "kl.grad_top_id_share",
    "kl.pull_ratio",
)
_STATS = ("kl.tokens", "kl.clamped", "kl.k1", "kl.k2", "kl.k3", "kl.capped", "kl.grad_sq", "kl.pull_sq")


def tally_kl(
    logp: Tensor,
    ref: Tensor,
    mask: Tensor,
    weight: Tensor,
    *,
    coef: float,
    estimator: str = "k3",
    ids: Tensor | None = None,
    sample_offset: int = 0,
    vocabulary: int | None = None,
) -> Tally:
    """Tallies the KL of one micro-batch; on a GPU this waits (see `measure_kl`)."""
    return measure_kl(
        logp,
        ref,
        mask,
        weight,
        coef=coef,
        estimator=estimator,
        ids=ids,
        sample_offset=sample_offset,
        vocabulary=vocabulary,
    ).tally()


def measure_kl(
    logp: Tensor,
    ref: Tensor,
    mask: Tensor,
    weight: Tensor,
    *,
    coef: float,
    estimator: str = "k3",
    ids: Tensor | None = None,
    sample_offset: int = 0,
    vocabulary: int | None = None,
) -> Reduction:
    """Launches the sums and returns at once.

    ``logp``, ``ref``, ``mask``, ``ids`` (B, T) on one device; ``mask`` is the loss mask (non-zero = trained on);
    ``weight`` broadcasts to (B, T) and is the weight w_t that the loss gives a token (`gradients.weights_for`);
    ``coef`` the KL coefficient in force. Tokens with a non-finite log-prob are left out (`nonfinite` counts
    them). ``sample_offset`` is added to rows; ``vocabulary`` is a hint of how many ids there are.
    """
    if estimator not in ESTIMATORS:
        raise ValueError(f"estimator: expected one of {', '.join(ESTIMATORS)}, got {estimator!r}")
    policy, reference, weights = logp.detach(), ref.detach(), per_token(weight).detach()
    space, peaks, rows = Workspace(logp, torch.float64, torch.float64), Peaks(logp, ids), []
    table = IdTable(ids, vocabulary) if ids is not None else None
    for block in row_blocks(logp):
        distance, scratch = space.of(block)
        unused = difference_into(distance, reference[block], policy[block], mask[block])
        ends = span(distance)
        growth = torch.exp(distance, out=scratch).sub_(1.0)
        values = _values(distance, growth, unused, capped=max(map(_k3, ends)) > CAP)
        slope = _slope(estimator, distance, growth, unused)
        peak = peaks.of(block, max(_steepness(estimator, end) for end in ends), slope.abs)
        slope *= slope
        if table is not None and ids is not None:
            table.add(ids[block], slope)
        by_row = slope.sum(1, keepdim=True)
        rows += [stack([*values, by_row.sum(), _pull(slope, by_row, weights, block)]), peak]
    stats = torch.cat(rows) if rows else logp.new_zeros(0, dtype=torch.float64)
    return Reduction(
        parts=(stats, table.part()) if table else (stats,),
        build=partial(
            _build, coef=coef, place=Place(logp.shape[1], sample_offset), by_id=table.build if table else None
        ),
    )


def _values(distance: Tensor, growth: Tensor, unused: Tensor, *, capped: bool) -> list[Tensor]:
    """Tokens, tokens beyond the cap, then the sums of k1, k2, k3 and min(k3, cap). A d of 0 adds nothing.

    ``growth`` is exp(d) - 1; ``capped`` may be False only where no k3 is beyond the cap.
    """
    flat, tokens = distance.view(-1), unused.numel() - unused.count_nonzero()
    total = flat.sum()
    k3 = growth.sum() - total
    beyond, below = torch.zeros_like(k3), k3
    if capped:
        each = growth - distance
        beyond, below = (each > CAP).count_nonzero(), each.clamp_max_(CAP).sum()
    return [tokens, beyond, -total, flat.dot(flat) / 2, k3, below]


def _slope(estimator: str, distance: Tensor, growth: Tensor, unused: Tensor) -> Tensor:
    """k' but for its sign, in the buffer of ``growth``; 0 where a token does not count."""
    if estimator == "k3":
        return growth
    return growth.copy_(distance) if estimator == "k2" else growth.fill_(1.0).masked_fill_(unused, 0.0)


def _k3(distance: float) -> float:
    return _growth(distance) - distance


def _steepness(estimator: str, distance: float) -> float:
    """|k'| at one d."""
    if estimator == "k3":
        return abs(_growth(distance))
    return abs(distance) if estimator == "k2" else 1.0


def _growth(distance: float) -> float:
    try:
        return math.expm1(distance)
    except OverflowError:
        return math.inf


def _pull(squares: Tensor, by_row: Tensor, weights: Tensor, block: slice) -> Tensor:
    """Sum of (w k')^2 from k'^2, by rows where a row has one weight.

    A weight of 0 pulls nothing, even where the derivative overflows.
    """
    weight = weights[block] if weights.shape[0] > 1 else weights
    each = by_row if weight.shape[1] == 1 else squares
    return (weight.double().square() * each).masked_fill_(weight == 0, 0.0).sum()


def _build(
    parts: Sequence[Floats], *, coef: float, place: Place, by_id: Callable[[Floats], IdSums] | None
) -> Tally:
    rows = parts[0].reshape(-1, len(_STATS) + 3)
    stats = dict(zip(_STATS, rows[:, : len(_STATS)].sum(axis=0).tolist(), strict=True))
    counts = {name: int(stats.pop(name)) for name in _STATS[:2]}
    # exp rounds where d is next to 0; k3 itself is never negative
    stats["kl.k3"], stats["kl.capped"] = max(stats["kl.k3"], 0.0), max(stats["kl.capped"], 0.0)
    # a coefficient of 0 pulls nothing, even where the sum overflows
    stats["kl.pull_sq"] = coef * coef * stats["kl.pull_sq"] if coef else 0.0
    return Tally(
        counts=counts,
        sums=stats,
        maxima={"kl.grad_max": _peak(place.extreme(rows[:, -3:]))} if counts["kl.tokens"] else {},
        by_id={"kl.grad_top_id_share": by_id(parts[1])} if by_id else {},
    )


def _peak(extreme: Extreme) -> Extreme:
    # where all derivatives are 0 no token stands out
    return extreme if extreme.value > 0 else Extreme(value=0.0)
