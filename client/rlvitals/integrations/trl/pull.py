"""What pulls on the log-probs in this trainer's loss: its token weights, and the policy's own pull."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from rlvitals.integrations.pieces import absent
from rlvitals.integrations.trl import facts, places
from rlvitals.probes import gradients
from rlvitals.probes.reduction import Reduction

SEQUENCE_PULL = "not measured: this loss has one ratio per sequence"
SOME_TOKENS = "not measured: top_entropy_quantile lets some tokens pull only, and does not say which"
OFF_POLICY_MASK = "not measured: off_policy_mask_threshold lets some completions pull only"
DELTA = "not measured: delta bounds the ratio a second time"
OWN_WEIGHTS = "not measured: this loss weighs tokens off policy by a function of its own"
OF_PULL = ("kl.pull_ratio", "kl.share_of_gradient")


def weights(trainer: Any, inputs: Mapping[str, Any], mask: Tensor) -> Tensor:
    """The weight that this trainer's loss gives each token."""
    loss_type = getattr(trainer, "loss_type", "grpo")
    whole = loss_type in gradients.BATCH_TOKENS and not places.rescales_generation()
    return gradients.weights_for(
        loss_type,
        mask,
        accumulation=1.0 if whole else facts.accumulation(trainer),
        max_completion_length=getattr(trainer, "max_completion_length", None),
        num_items_in_batch=inputs.get("num_items_in_batch"),
        num_processes=trainer.accelerator.num_processes,
        steps_per_generation=1 if whole else getattr(trainer.args, "steps_per_generation", None) or 1,
    )


def measure_pull(
    trainer: Any, inputs: Mapping[str, Any], logp: Tensor, mask: Tensor, advantages: Tensor
) -> Reduction:
    old, loss_type = inputs.get("old_per_token_logps"), getattr(trainer, "loss_type", "grpo")
    reason = _no_pull(trainer, loss_type, on_policy=old is None)
    if reason:
        return absent(OF_PULL, reason, logp)
    weight, correction = weights(trainer, inputs, mask), inputs.get("importance_sampling_ratio")
    low, high = clip_range(trainer)
    return gradients.measure_policy_pull(
        logp,
        old,
        advantages,
        mask,
        weight if correction is None else weight * correction.detach(),
        clip=(low, high) if loss_type in gradients.CLIPPED else None,
        cap=high if loss_type == "cispo" else None,
    )


def _no_pull(trainer: Any, loss_type: str, *, on_policy: bool) -> str:
    """Why the policy's pull has no closed form in this loss; "" where it has."""
    args = trainer.args
    if float(getattr(trainer, "top_entropy_quantile", 1.0)) < 1.0:
        return SOME_TOKENS
    if getattr(args, "off_policy_mask_threshold", None) is not None:
        return OFF_POLICY_MASK
    if on_policy:
        return ""
    if getattr(trainer, "importance_sampling_level", "token") != "token":
        return SEQUENCE_PULL
    if loss_type in ("sapo", "vespo"):
        return OWN_WEIGHTS
    return DELTA if getattr(args, "delta", None) is not None and loss_type in gradients.CLIPPED else ""


def clip_range(trainer: Any) -> tuple[float, float]:
    return float(getattr(trainer, "epsilon_low", 0.2)), float(getattr(trainer, "epsilon_high", 0.2))
