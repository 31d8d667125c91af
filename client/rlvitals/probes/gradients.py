"""What pulls on the log-probs: the loss's token weights, the policy pull, and the gradient norm.

Tensors are worked on where they are (`pulls_torch`), arrays without torch (`pulls_numpy`); both give the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from rlvitals.probes.arguments import (
    ProbeArgumentError,
    check_broadcasts,
    check_choice,
    check_floating,
    check_per_row,
    check_same_device,
    check_tokens,
)
from rlvitals.probes.arrays import Floats, floats, is_tensor
from rlvitals.probes.census import census
from rlvitals.probes.tally import Tally
from rlvitals.probes.uncompiled import uncompiled

if TYPE_CHECKING:
    from torch import Tensor

    from rlvitals.probes.reduction import Reduction

M = TypeVar("M")
ROW_MEAN = ("grpo", "sapo")
BATCH_TOKENS = ("dapo", "cispo", "vespo")
CLIPPED = ("grpo", "bnpo", "dr_grpo", "dapo", "luspo")
"""Losses with PPO's pessimistic minimum: a token beyond the clip range has no gradient."""
LOSS_TYPES = (*ROW_MEAN, "bnpo", "dr_grpo", *BATCH_TOKENS, "luspo")


@uncompiled
def weights_for(
    loss_type: str,
    mask: M,
    *,
    accumulation: float = 1,
    max_completion_length: int | None = None,
    num_items_in_batch: Any = None,
    num_processes: int = 1,
    steps_per_generation: int = 1,
) -> M:
    """The weight that TRL's GRPO loss gives a token under ``mask`` (B, T), as doubles that broadcast to (B, T).

    ============================  =============================================================
    grpo, sapo                    1 / (tokens of the row * B * accumulation)
    bnpo                          1 / (tokens of the micro-batch * accumulation)
    dr_grpo                       1 / (B * max_completion_length * accumulation)
    dapo, cispo, vespo            num_processes * steps_per_generation /
                                  (num_items_in_batch * accumulation)
    luspo                         1 / (B * accumulation)
    ============================  =============================================================

    A tensor for a tensor, an array for an array. Raises ProbeArgumentError naming the argument that the loss type
    needs, or the unknown loss type.
    """
    backend, seen = _backend_of(mask)
    check_tokens(mask=seen)
    check_choice("loss_type", loss_type, LOSS_TYPES)
    rows = max(seen.shape[0], 1)
    if loss_type in ROW_MEAN:
        divisor = backend.tokens_of_rows(seen) * (rows * accumulation)
    elif loss_type == "bnpo":
        divisor = backend.tokens_of_batch(seen) * accumulation
    elif loss_type in BATCH_TOKENS:
        items = backend.number_on(seen, _needed(num_items_in_batch, "num_items_in_batch", loss_type))
        divisor = items.clip(1.0) * accumulation / (num_processes * steps_per_generation)
    else:
        cap = _needed(max_completion_length, "max_completion_length", loss_type) if loss_type == "dr_grpo" else 1
        divisor = backend.number_on(seen, rows * cap * accumulation)
    weights: M = (1.0 / divisor).reshape(-1, 1)
    return weights


def _backend_of(mask: Any) -> tuple[Any, Any]:
    """The module that works on ``mask``, and the mask, padded where it is ragged."""
    if not is_tensor(mask):
        from rlvitals.probes import pulls_numpy

        return pulls_numpy, mask
    from rlvitals.probes import pulls_torch
    from rlvitals.probes.nested import dense

    return pulls_torch, dense(mask=mask)[0]


def _needed(value: Any, name: str, loss_type: str) -> Any:
    if value is None:
        raise ProbeArgumentError(name, f"a number, the loss type {loss_type!r} divides by it", "None")
    return value


@uncompiled
def tally_policy_pull(
    logp: Any,
    old: Any,
    advantages: Any,
    mask: Any,
    weight: Any,
    *,
    clip: tuple[float, float] | None = None,
    cap: float | None = None,
) -> Tally:
    """Tallies the denominator of kl.pull_ratio, of tensors (on a GPU this waits) or of arrays.

    See `measure_policy_pull`.
    """
    if is_tensor(logp):
        return measure_policy_pull(logp, old, advantages, mask, weight, clip=clip, cap=cap).tally()
    from rlvitals.probes import pulls_numpy

    _check_pull(logp, old, advantages, mask, weight)
    square = pulls_numpy.policy_pull(logp, old, advantages, mask, weight, clip=clip, cap=cap)
    return Tally(sums={"policy.pull_sq": square})


@uncompiled
def measure_policy_pull(
    logp: Tensor,
    old: Tensor | None,
    advantages: Tensor,
    mask: Tensor,
    weight: Tensor,
    *,
    clip: tuple[float, float] | None = None,
    cap: float | None = None,
) -> Reduction:
    """Launches sum (w A r)^2 over tokens under ``mask`` and returns at once.

    ``logp``, ``old``, ``mask`` (B, T); ``advantages`` (B,) or (B, T); ``weight`` broadcasts to (B, T). Without
    ``old`` the ratio r is 1 (the trainer's old log-probs *are* the current ones). Non-finite terms are left out.
    ``clip`` (below, above) is the range of a loss with PPO's pessimistic minimum: r > 1 + above with A > 0 and
    r < 1 - below with A < 0 have no gradient. ``cap`` is the largest r of a loss that holds it there and lets the
    gradient through (CISPO).
    Raises ShapeError, DeviceError or DtypeError naming the argument.
    """
    from rlvitals.probes import pulls_torch
    from rlvitals.probes.nested import dense

    logp, old, mask, advantages, weight = dense(
        logp=logp, old=old, mask=mask, advantages=advantages, weight=weight
    )
    _check_pull(logp, old, advantages, mask, weight)
    return pulls_torch.policy_pull(logp, old, advantages, mask, weight, _policy_pull, clip=clip, cap=cap)


def _check_pull(logp: Any, old: Any, advantages: Any, mask: Any, weight: Any) -> None:
    check_tokens(logp=logp, old=old, mask=mask)
    check_floating(logp=logp, old=old)
    check_per_row("advantages", advantages, logp.shape)
    check_broadcasts("weight", weight, logp.shape)
    check_same_device(logp=logp, advantages=advantages, weight=weight)


def _policy_pull(parts: Sequence[Floats]) -> Tally:
    return Tally(sums={"policy.pull_sq": float(parts[0].sum())})


@uncompiled
def tally_loss_tokens(mask: Any) -> Tally:
    """Tallies policy.loss_tokens, the tokens under the loss mask (B, T), a tensor or an array."""
    if is_tensor(mask):
        return measure_loss_tokens(mask).tally()
    check_tokens(mask=mask)
    return Tally(counts={"policy.loss_tokens": int((mask != 0).sum())})


@uncompiled
def measure_loss_tokens(mask: Tensor) -> Reduction:
    """As `tally_loss_tokens`, without waiting."""
    from rlvitals.probes import pulls_torch
    from rlvitals.probes.nested import dense

    (mask,) = dense(mask=mask)
    check_tokens(mask=mask)
    return pulls_torch.loss_tokens(mask, _loss_tokens)


def _loss_tokens(parts: Sequence[Floats]) -> Tally:
    return Tally(counts={"policy.loss_tokens": int(parts[0][0])})


def tally_gradient_norm(norm: Any) -> Tally:
    """Counts a non-finite gradient norm by kind (a number, or a tensor with one), as read before clipping."""
    return census("gradient", floats(norm))
