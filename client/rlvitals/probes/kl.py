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

from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor

from rlvitals.probes.arrays import Floats
from rlvitals.probes.id_sums import IdSums
from rlvitals.probes.reduction import IdTable, Place, Reduction, at, per_token, row_blocks, stack
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
_SUMS = ("kl.k1", "kl.k2", "kl.k3", "kl.capped", "kl.grad_sq", "kl.pull_sq")
_WIDTH = len(_SUMS) + 5


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
    policy, reference, weights = logp.detach(), ref.detach(), per_token(weight).detach().expand(logp.shape)
    table = IdTable(ids, vocabulary) if ids is not None else None
    rows = []
    for block in row_blocks(logp):
        distance, used = _distance(policy[block], reference[block], mask[block])
        slope = _slope(distance, used, estimator)
        rows.append(
            _sums(distance, used, slope, weights[block]) + _largest(slope, used, ids, block, logp.shape[1])
        )
        if table is not None and ids is not None:
            table.add(ids[block], slope * slope)
    stats = torch.stack([stack(row) for row in rows]) if rows else logp.new_zeros((0, _WIDTH), dtype=torch.float64)
    return Reduction(
        parts=(stats.reshape(-1), table.part()) if table else (stats.reshape(-1),),
        build=partial(
            _build, coef=coef, place=Place(logp.shape[1], sample_offset), by_id=table.build if table else None
        ),
    )


def _distance(logp: Tensor, ref: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """d in double precision, and which tokens count; d is 0 where a token does not, so that it adds nothing."""
    distance = ref.double() - logp.double()
    used = (mask != 0) & distance.isfinite()
    return distance.masked_fill_(~used, 0.0), used


def _slope(distance: Tensor, used: Tensor, estimator: str) -> Tensor:
    """|k'|; 0 where a token does not count."""
    if estimator == "k3":
        return torch.expm1(distance).abs_()
    return distance.abs() if estimator == "k2" else used.double()


def _sums(distance: Tensor, used: Tensor, slope: Tensor, weights: Tensor) -> list[Tensor]:
    """In the order of ``_SUMS``, then the tokens and those beyond the cap."""
    k3 = torch.expm1(distance) - distance
    # a weight of 0 pulls nothing, even where the derivative overflows
    pull = (weights * slope).masked_fill_(weights == 0, 0.0)
    return [
        -distance.sum(),
        (distance * distance).sum() / 2,
        k3.sum(),
        k3.clamp_max(CAP).sum(),
        (slope * slope).sum(),
        (pull * pull).sum(),
        used.sum(),
        (k3 > CAP).sum(),
    ]


def _largest(slope: Tensor, used: Tensor, ids: Tensor | None, block: slice, width: int) -> list[Tensor]:
    """|k'| of one token, its flat index in the whole batch and its id (-1: unknown); -1 where none counts."""
    candidates = slope.masked_fill(~used, -1.0).reshape(-1)
    index = candidates.argmax()
    token = at(ids[block], index) if ids is not None else torch.full_like(index, -1)
    return [candidates.max(), index + block.start * width, token]


def _build(
    parts: Sequence[Floats], *, coef: float, place: Place, by_id: Callable[[Floats], IdSums] | None
) -> Tally:
    rows = parts[0].reshape(-1, _WIDTH)
    sums = dict(zip(_SUMS, rows[:, : len(_SUMS)].sum(axis=0).tolist(), strict=True))
    sums["kl.pull_sq"] = coef * coef * sums["kl.pull_sq"] if sums["kl.pull_sq"] else 0.0
    tokens, clamped = (int(n) for n in rows[:, len(_SUMS) : len(_SUMS) + 2].sum(axis=0))
    return Tally(
        counts={"kl.tokens": tokens, "kl.clamped": clamped},
        sums=sums,
        maxima={"kl.grad_max": place.extreme(rows[:, -3:])} if tokens else {},
        by_id={"kl.grad_top_id_share": by_id(parts[1])} if by_id else {},
    )
