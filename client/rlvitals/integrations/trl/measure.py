"""One micro-batch of the loss → reductions. Nothing here waits for a GPU; every tensor is detached."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from rlvitals.integrations.trl import facts
from rlvitals.probes import gradients, groups, kl, nonfinite, ratios
from rlvitals.probes.arrays import Floats
from rlvitals.probes.reduction import Reduction
from rlvitals.probes.tally import Tally

LOSS, GRADIENT = "policy.loss", "gradient.norm"
NO_LOGPROBS = "the trainer showed no per-token log-probs for this loss"
NO_REFERENCE_IN_LOSS = "this trainer's loss has no reference log-probs"
NO_SAMPLER = "not measured: no vLLM, the trainer samples with its own model"
SEQUENCE_CORRECTED = "not measured: use_bias_correction_kl multiplies the KL by one ratio per sequence"
CORRECTED = "not measured: use_bias_correction_kl multiplies the KL by the importance ratio"
SEQUENCE_LEVEL = "not measured: this loss clips one ratio per sequence"
_CLIPS = ("ratio.clip_low_share", "ratio.clip_high_share")
_PULLS = ("kl.grad_norm", "kl.pull_ratio")


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroBatch:
    """``inputs`` is TRL's own dict, ``logp`` (B, T) the kept log-probs of the training call.

    ``advantages_told`` where this step's generation has told them already.
    """

    inputs: Mapping[str, Any]
    logp: Tensor | None
    loss: Tensor
    sample_offset: int
    vocabulary: int | None
    advantages_told: bool = False


def reductions(trainer: Any, batch: MicroBatch) -> Iterator[Reduction]:
    """All that one micro-batch tells, in pieces that add up."""
    yield of_loss(batch.loss)
    inputs, logp = batch.inputs, batch.logp
    mask = loss_mask(inputs)
    if mask is None or logp is None or logp.shape != mask.shape:
        yield absent(
            (*kl.METRICS, *ratios.METRICS, *ratios.ROLLOUT, "policy.loss_tokens"), NO_LOGPROBS, batch.loss
        )
        return
    old, ref, advantages = (
        inputs.get(key) for key in ("old_per_token_logps", "ref_per_token_logps", "advantages")
    )
    logprobs = {name: value for name, value in (("logp", logp), ("ref", ref), ("old", old)) if value is not None}
    where: dict[str, Any] = {"ids": inputs["completion_ids"], "sample_offset": batch.sample_offset}
    yield nonfinite.measure_nonfinite(logprobs, mask, **where)
    yield gradients.measure_loss_tokens(mask)
    if advantages is None:
        return
    weight = weights(trainer, inputs, mask)
    if not batch.advantages_told:
        yield of_advantages(advantages, batch.sample_offset)
    yield gradients.measure_policy_pull(logp, old, advantages, mask, weight)
    yield _kl(trainer, batch, logp, ref, mask, weight, old)
    yield _ratios(trainer, batch, logp, old, mask, advantages)
    yield _rollout(old if old is not None else logp, inputs.get("sampling_per_token_logps"), mask)


def withheld(trainer: Any) -> dict[str, str]:
    """Metrics whose closed form does not hold for this trainer's loss, with the reason."""
    if getattr(trainer, "importance_sampling_level", "token") == "token":
        return {}
    found = dict.fromkeys(_CLIPS, SEQUENCE_LEVEL)
    return found | (dict.fromkeys(_PULLS, SEQUENCE_CORRECTED) if facts.corrects_kl(trainer) else {})


def loss_mask(inputs: Mapping[str, Any]) -> Tensor | None:
    """What the loss trains on: completion tokens without padding and without what a tool wrote."""
    mask: Tensor | None = inputs.get("completion_mask")
    tools = inputs.get("tool_mask")
    return mask if mask is None or tools is None else mask * tools


def weights(trainer: Any, inputs: Mapping[str, Any], mask: Tensor) -> Tensor:
    """The weight that this trainer's loss gives each token."""
    return gradients.weights_for(
        getattr(trainer, "loss_type", "grpo"),
        mask,
        accumulation=getattr(trainer, "current_gradient_accumulation_steps", 1),
        max_completion_length=getattr(trainer, "max_completion_length", None),
        num_items_in_batch=inputs.get("num_items_in_batch"),
        num_processes=trainer.accelerator.num_processes,
        steps_per_generation=getattr(trainer.args, "steps_per_generation", None) or 1,
    )


def of_loss(loss: Tensor) -> Reduction:
    """Sum of the micro-batch losses, as computed: the trainer's log replaces a NaN by 0 or by a mean."""
    return Reduction(parts=(loss.detach().double().reshape(-1),), build=_loss)


def of_gradient(norm: Any) -> Reduction:
    """The global norm before clipping, as the clipping returned it."""
    value = norm.detach() if isinstance(norm, Tensor) else torch.tensor(float(norm))
    return Reduction(parts=(value.double().reshape(-1),), build=_gradient)


def of_advantages(advantages: Tensor, sample_offset: int) -> Reduction:
    return Reduction(
        parts=(advantages.detach().double().reshape(-1),),
        build=partial(_advantages, tuple(advantages.shape), sample_offset),
    )


def _rollout(trained: Tensor, sampled: Tensor | None, mask: Tensor) -> Reduction:
    return (
        absent(ratios.ROLLOUT, NO_SAMPLER, trained)
        if sampled is None
        else ratios.measure_rollout(trained, sampled, mask)
    )


def absent(names: tuple[str, ...], reason: str, like: Tensor) -> Reduction:
    """Says that ``names`` could not be measured, in the form of the rest."""
    nothing = torch.zeros(0, dtype=torch.float64, device=like.device)
    return Reduction(parts=(nothing,), build=lambda parts: Tally.absent(names, reason))


def _kl(
    trainer: Any,
    batch: MicroBatch,
    logp: Tensor,
    ref: Tensor | None,
    mask: Tensor,
    weight: Tensor,
    old: Tensor | None,
) -> Reduction:
    """With TRL's bias correction the loss holds k3 * r, whose derivative r * (k3' + k3) is r times that of k2."""
    coefficient = facts.kl_coef(trainer)
    if ref is None or not coefficient:
        reason = facts.BETA_IS_ZERO if coefficient == 0 else NO_REFERENCE_IN_LOSS
        return absent(kl.METRICS, reason, logp)
    corrected = facts.corrects_kl(trainer)
    if corrected and old is not None:
        weight = weight * (logp.detach().double() - old.detach().double()).exp()
    found = kl.measure_kl(
        logp,
        ref,
        mask,
        weight,
        coef=coefficient,
        estimator="k2" if corrected else "k3",
        ids=batch.inputs["completion_ids"],
        sample_offset=batch.sample_offset,
        vocabulary=batch.vocabulary,
    )
    return replace(found, build=partial(_corrected, found.build, old is None)) if corrected else found


def _corrected(build: Callable[[Sequence[Floats]], Tally], on_policy: bool, parts: Sequence[Floats]) -> Tally:
    """The gradient is that of k2, the value k3 times the ratio: with a ratio of 1 it is k3."""
    tally = build(parts)
    sums = {name: value for name, value in tally.sums.items() if name != "kl.in_loss"}
    if on_policy:
        return replace(tally, sums={**sums, "kl.in_loss": sums["kl.k3"]})
    return replace(tally, sums=sums, missing={**tally.missing, "kl.in_loss": CORRECTED})


def _ratios(
    trainer: Any, batch: MicroBatch, logp: Tensor, old: Tensor | None, mask: Tensor, advantages: Tensor
) -> Reduction:
    if old is None:
        return absent(ratios.METRICS, ratios.NO_OLD, logp)
    return ratios.measure_ratios(
        logp,
        old,
        mask,
        advantages,
        batch.inputs["completion_ids"],
        eps_low=float(getattr(trainer, "epsilon_low", 0.2)),
        eps_high=float(getattr(trainer, "epsilon_high", 0.2)),
        sample_offset=batch.sample_offset,
    )


def _loss(parts: Sequence[Floats]) -> Tally:
    losses = parts[0]
    return Tally(sums={LOSS: float(losses.sum())}) + nonfinite.tally_nonfinite(loss=losses)


def _gradient(parts: Sequence[Floats]) -> Tally:
    return Tally(sums={GRADIENT: float(parts[0].sum())}) + gradients.tally_gradient_norm(parts[0])


def _advantages(shape: tuple[int, ...], sample_offset: int, parts: Sequence[Floats]) -> Tally:
    values = parts[0].reshape(shape)
    return groups.tally_advantages(values, sample_offset=sample_offset) + nonfinite.tally_nonfinite(
        advantages=values
    )
