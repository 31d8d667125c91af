"""KL to the reference and its gradient with respect to the log-probs, in closed form.

The estimators, their derivatives and the trainers' clamps are told in `kl_form`; all is counted in doubles, from
raw log-probs. One token far below the reference can own the whole sum, and exp(d) may overflow to +Inf: that is
the metric's true value and is reported with its token. Tensors are summed where they are (`kl_torch`), arrays
without torch (`kl_numpy`); both give the same Tally.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from rlvitals.contract.report import Extreme
from rlvitals.probes.arguments import (
    check_broadcasts,
    check_floating,
    check_ids,
    check_same_device,
    check_tokens,
)
from rlvitals.probes.arrays import Floats, is_tensor
from rlvitals.probes.id_sums import IdSums
from rlvitals.probes.kl_form import CAP, ESTIMATORS, Form
from rlvitals.probes.place import Place
from rlvitals.probes.tally import Tally
from rlvitals.probes.uncompiled import uncompiled

if TYPE_CHECKING:
    from torch import Tensor

    from rlvitals.probes.reduction import Reduction

__all__ = ["CAP", "ESTIMATORS", "METRICS", "STATS", "measure_kl", "tally_kl"]

METRICS = (
    "kl.k1",
    "kl.k2",
    "kl.k3",
    "kl.abs",
    "kl.capped",
    "kl.in_loss",
    "kl.k1_max",
    "kl.k2_max",
    "kl.k3_max",
    "kl.abs_max",
    "kl.clamped_share",
    "kl.dead_zone_share",
    "kl.overflow_margin",
    "kl.nan_gradient_tokens",
    "kl.grad_norm",
    "kl.grad_l2",
    "kl.grad_rms",
    "kl.grad_max",
    "kl.grad_top_id_share",
    "kl.pull_ratio",
    "kl.share_of_gradient",
)
COUNTS = ("kl.tokens", "kl.clamped", "kl.dead", "kl.poisoned")
STATS = (
    "kl.tokens",
    "kl.clamped",
    "kl.dead",
    "kl.k1",
    "kl.k2",
    "kl.k3",
    "kl.abs",
    "kl.capped",
    "kl.in_loss",
    "kl.poisoned",
    "kl.grad_sq",
    "kl.pull_sq",
)
"""What a block sums; behind them (d, flat index, id) of the largest d and (-d, flat index, id) of the least."""


@uncompiled
def tally_kl(
    logp: Any,
    ref: Any,
    mask: Any,
    weight: Any,
    *,
    coef: float,
    estimator: str = "k3",
    clamp: str | None = None,
    ids: Any = None,
    sample_offset: int = 0,
    vocabulary: int | None = None,
) -> Tally:
    """Tallies the KL of one micro-batch, of tensors (on a GPU this waits) or of arrays; see `measure_kl`."""
    if is_tensor(logp):
        return measure_kl(
            logp,
            ref,
            mask,
            weight,
            coef=coef,
            estimator=estimator,
            clamp=clamp,
            ids=ids,
            sample_offset=sample_offset,
            vocabulary=vocabulary,
        ).tally()
    from rlvitals.probes import kl_numpy

    form = _checked(logp, ref, mask, weight, ids, estimator, clamp)
    rows, by_id, overflow = kl_numpy.summed(logp, ref, mask, weight, form=form, ids=ids)
    return _builder(form, coef, logp.shape[1], sample_offset)(rows, by_id, overflow)


@uncompiled
def measure_kl(
    logp: Tensor,
    ref: Tensor,
    mask: Tensor,
    weight: Tensor,
    *,
    coef: float,
    estimator: str = "k3",
    clamp: str | None = None,
    ids: Tensor | None = None,
    sample_offset: int = 0,
    vocabulary: int | None = None,
) -> Reduction:
    """Launches the sums and returns at once.

    ``logp``, ``ref``, ``mask``, ``ids`` (B, T) on one device; ``mask`` is the loss mask (non-zero = trained on);
    ``weight`` broadcasts to (B, T) and is the weight w_t that the loss gives a token (`gradients.weights_for`);
    ``coef`` the KL coefficient in force; ``estimator`` and ``clamp`` as the trainer's loss has them
    (`kl_form.FORMS`). Tokens with a non-finite log-prob are left out (`nonfinite` counts them). ``sample_offset``
    is added to rows; ``vocabulary`` is a hint of how many ids there are.

    Raises `ProbeArgumentError` naming the argument of a wrong shape, device, dtype or name.
    """
    from rlvitals.probes import kl_torch
    from rlvitals.probes.nested import dense

    logp, ref, mask, weight, ids = dense(logp=logp, ref=ref, mask=mask, weight=weight, ids=ids)
    form = _checked(logp, ref, mask, weight, ids, estimator, clamp)
    return kl_torch.launch(
        logp,
        ref,
        mask,
        weight,
        form=form,
        ids=ids,
        vocabulary=vocabulary,
        build=_builder(form, coef, logp.shape[1], sample_offset),
    )


def _checked(logp: Any, ref: Any, mask: Any, weight: Any, ids: Any, estimator: str, clamp: str | None) -> Form:
    form = Form.of(estimator, clamp)
    check_tokens(logp=logp, ref=ref, mask=mask, ids=ids)
    check_floating(logp=logp, ref=ref)
    check_ids("ids", ids)
    check_broadcasts("weight", weight, logp.shape)
    check_same_device(logp=logp, weight=weight)
    return form


def _builder(form: Form, coef: float, width: int, sample_offset: int) -> Callable[..., Tally]:
    return partial(_build, form=form, coef=coef, place=Place(width, sample_offset))


def _build(rows: Floats, by_id: IdSums | None, overflow: float, *, form: Form, coef: float, place: Place) -> Tally:
    table = rows.reshape(-1, len(STATS) + 6)
    sums = dict(zip(STATS, table[:, : len(STATS)].sum(axis=0).tolist(), strict=True))
    counts = {name: int(sums.pop(name)) for name in COUNTS}
    # beyond the limit of exp the gradient is NaN, not 0
    counts["kl.dead"] -= counts["kl.poisoned"]
    # exp rounds where d is next to 0; k3 itself is never negative
    for name in ("kl.k3", "kl.capped", *(("kl.in_loss",) if form.estimator in ("k3", "k3+") else ())):
        sums[name] = max(sums[name], 0.0)
    # a coefficient of 0 pulls nothing, even where the sum overflows
    sums["kl.pull_sq"] = coef * coef * sums["kl.pull_sq"] if coef else 0.0
    tally = Tally(counts=counts, sums=sums, by_id={"kl.grad_top_id_share": by_id} if by_id is not None else {})
    if not counts["kl.tokens"]:
        return tally
    farthest, nearest = place.extreme(table[:, -6:-3]), place.extreme(table[:, -3:])
    tally += _extremes(farthest, farthest.value, form) + _extremes(nearest, -nearest.value, form)
    margin = _at(farthest, overflow - farthest.value)
    return tally + Tally(
        minima={"kl.overflow_margin": margin},
        firsts={"kl.nan_gradient_tokens": farthest} if counts["kl.poisoned"] else {},
    )


def _extremes(seen: Extreme, distance: float, form: Form) -> Tally:
    """Every estimator and derivative has its largest value at the largest or at the least d."""
    found = {f"kl.{name}_max": Form(name).value(distance) for name in ("k1", "k2", "k3", "abs")}
    found["kl.grad_max"] = abs(form.slope(distance))
    maxima = {name: _at(seen, value) for name, value in found.items()}
    if form.estimator in ("k1", "abs"):
        # every token pulls alike
        maxima["kl.grad_max"] = Extreme(value=found["kl.grad_max"])
    return Tally(maxima=maxima)


def _at(seen: Extreme, value: float) -> Extreme:
    """``value`` at the place of ``seen``; where all log-probs agree no token stands out."""
    if value == 0:
        return Extreme(value=0.0)
    return Extreme(
        value=value,
        token_id=seen.token_id,
        position=seen.position,
        sample=seen.sample,
        masked=seen.masked,
    )
