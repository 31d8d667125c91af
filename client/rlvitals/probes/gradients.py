"""What pulls on the log-probs: the loss's token weights, the policy pull, and the gradient norm."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from rlvitals.probes.arguments import (
    ProbeArgumentError,
    check_broadcasts,
    check_choice,
    check_floating,
    check_per_row,
    check_same_device,
    check_tokens,
)
from rlvitals.probes.arrays import Floats, floats
from rlvitals.probes.nested import dense
from rlvitals.probes.reduction import Reduction, Workspace, on_host, per_token, row_blocks, stack, tokens_by_row
from rlvitals.probes.tally import Tally
from rlvitals.probes.uncompiled import uncompiled

ROW_MEAN = ("grpo", "sapo")
BATCH_TOKENS = ("dapo", "cispo", "vespo")
LOSS_TYPES = (*ROW_MEAN, "bnpo", "dr_grpo", *BATCH_TOKENS, "luspo")


@uncompiled
def weights_for(
    loss_type: str,
    mask: Tensor,
    *,
    accumulation: float = 1,
    max_completion_length: int | None = None,
    num_items_in_batch: float | Tensor | None = None,
    num_processes: int = 1,
    steps_per_generation: int = 1,
) -> Tensor:
    """The weight that TRL's GRPO loss gives a token under ``mask`` (B, T), as doubles that broadcast to (B, T).

    ============================  =============================================================
    grpo, sapo                    1 / (tokens of the row * B * accumulation)
    bnpo                          1 / (tokens of the micro-batch * accumulation)
    dr_grpo                       1 / (B * max_completion_length * accumulation)
    dapo, cispo, vespo            num_processes * steps_per_generation /
                                  (num_items_in_batch * accumulation)
    luspo                         1 / (B * accumulation)
    ============================  =============================================================

    Raises ProbeArgumentError naming the argument that the loss type needs, or the unknown loss type.
    """
    (mask,) = dense(mask=mask)
    check_tokens(mask=mask)
    check_choice("loss_type", loss_type, LOSS_TYPES)
    rows = max(mask.shape[0], 1)
    if loss_type in ROW_MEAN:
        divisor = tokens_by_row(mask).clamp_min(1).double() * (rows * accumulation)
    elif loss_type == "bnpo":
        divisor = tokens_by_row(mask).sum().clamp_min(1).double() * accumulation
    elif loss_type in BATCH_TOKENS:
        items = _on(mask, _needed(num_items_in_batch, "num_items_in_batch", loss_type))
        divisor = items.clamp_min(1.0) * accumulation / (num_processes * steps_per_generation)
    else:
        cap = _needed(max_completion_length, "max_completion_length", loss_type) if loss_type == "dr_grpo" else 1
        divisor = _on(mask, rows * cap * accumulation)
    return divisor.reciprocal().view(-1, 1)


def _needed(value: Any, name: str, loss_type: str) -> Any:
    if value is None:
        raise ProbeArgumentError(name, f"a number, the loss type {loss_type!r} divides by it", "None")
    return value


def _on(mask: Tensor, number: float | Tensor) -> Tensor:
    """A double where the mask is; a GPU waits for nothing, unless the number has to come from one to a CPU."""
    if isinstance(number, Tensor):
        return number.detach().to(mask.device, torch.float64, non_blocking=not on_host(mask))
    return torch.full((), float(number), dtype=torch.float64, device=mask.device)


@uncompiled
def tally_policy_pull(logp: Tensor, old: Tensor | None, advantages: Tensor, mask: Tensor, weight: Tensor) -> Tally:
    """Tallies the denominator of kl.pull_ratio; on a GPU this waits (see `measure_policy_pull`)."""
    return measure_policy_pull(logp, old, advantages, mask, weight).tally()


@uncompiled
def measure_policy_pull(
    logp: Tensor, old: Tensor | None, advantages: Tensor, mask: Tensor, weight: Tensor
) -> Reduction:
    """Launches sum (w A r)^2 over tokens under ``mask`` and returns at once.

    ``logp``, ``old``, ``mask`` (B, T); ``advantages`` (B,) or (B, T); ``weight`` broadcasts to (B, T). Without
    ``old`` the ratio r is 1 (the trainer's old log-probs *are* the current ones). Non-finite terms are left out.
    Raises ShapeError, DeviceError or DtypeError naming the argument.
    """
    logp, old, mask, advantages, weight = dense(
        logp=logp, old=old, mask=mask, advantages=advantages, weight=weight
    )
    check_tokens(logp=logp, old=old, mask=mask)
    check_floating(logp=logp, old=old)
    check_per_row("advantages", advantages, logp.shape)
    check_broadcasts("weight", weight, logp.shape)
    check_same_device(logp=logp, advantages=advantages, weight=weight)
    pulls, weights, space = (
        per_token(advantages).detach(),
        per_token(weight).detach(),
        Workspace(logp, torch.float64),
    )
    rows = []
    for block in row_blocks(logp):
        (pull,) = space.of(block)
        unused = mask[block] == 0
        if old is None:
            pull.fill_(1.0).masked_fill_(~logp.detach()[block].isfinite(), 0.0)
        else:
            pull.copy_(logp.detach()[block]).sub_(old.detach()[block]).exp_()
        pull.mul_(pulls[block]).mul_(weights[block] if weights.shape[0] > 1 else weights)
        flat = pull.masked_fill_(unused, 0.0).view(-1)
        total = flat.dot(flat)
        if not on_host(total) or math.isnan(total.item()):
            # NaN, also from 0 * inf, means that this token's pull is not known
            flat.masked_fill_(flat.isnan(), 0.0)
            total = flat.dot(flat)
        rows.append(total)
    return Reduction(parts=(stack(rows) if rows else logp.new_zeros(0, dtype=torch.float64),), build=_policy_pull)


def _policy_pull(parts: Sequence[Floats]) -> Tally:
    return Tally(sums={"policy.pull_sq": float(parts[0].sum())})


@uncompiled
def tally_loss_tokens(mask: Tensor) -> Tally:
    """Tallies policy.loss_tokens, the tokens under the loss mask (B, T)."""
    return measure_loss_tokens(mask).tally()


@uncompiled
def measure_loss_tokens(mask: Tensor) -> Reduction:
    """As `tally_loss_tokens`, without waiting."""
    (mask,) = dense(mask=mask)
    check_tokens(mask=mask)
    return Reduction(parts=(tokens_by_row(mask).sum().double().view(1),), build=_loss_tokens)


def _loss_tokens(parts: Sequence[Floats]) -> Tally:
    return Tally(counts={"policy.loss_tokens": int(parts[0][0])})


def tally_gradient_norm(norm: Any) -> Tally:
    """Counts a non-finite gradient norm (a number, or a tensor with one), as read before clipping."""
    values = floats(norm).ravel()
    return Tally(counts={"nonfinite.gradient": int(values.size - sum(map(math.isfinite, values)))})
