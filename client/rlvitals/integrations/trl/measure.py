"""One micro-batch of the loss → reductions. Nothing here waits for a GPU; every tensor is detached."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from rlvitals.integrations.pieces import Piece, absent, of_loss
from rlvitals.integrations.trl import facts, places
from rlvitals.integrations.trl.pull import OF_PULL, SEQUENCE_PULL, clip_range, measure_pull, weights
from rlvitals.probes import gradients, kl, nonfinite, ratios
from rlvitals.probes.advantages import measure_advantages
from rlvitals.probes.arrays import Floats
from rlvitals.probes.entropy import METRICS as OF_ENTROPY
from rlvitals.probes.entropy import measure_entropy
from rlvitals.probes.forced import measure_forced
from rlvitals.probes.reduction import Reduction
from rlvitals.probes.tally import Tally

_TENSORS = ("logprobs", "policy", "reference", "old", "rollout", "ratios", "padding")
NO_LOGPROBS = "the trainer showed no per-token log-probs for this loss"
NO_REFERENCE_IN_LOSS = "this trainer's loss has no reference log-probs"
NOT_IN_LOSS = "this trainer's KL is in the reward, not in the loss"
OF_LOSS = (
    "kl.in_loss",
    "kl.grad_norm",
    "kl.grad_l2",
    "kl.grad_rms",
    "kl.grad_max",
    "kl.grad_top_id_share",
    "kl.dead_zone_share",
    "kl.nan_gradient_tokens",
    "kl.parameter_grad_norm",
)
IN_REWARD = "this trainer's KL is in the reward: it is measured when completions are generated"
NO_ENTROPY = "not measured: this trainer shows no entropies of tokens (TRL before 0.20, Liger's loss)"
NO_SAMPLER = "not measured: no vLLM, the trainer samples with its own model"
SEQUENCE_CORRECTED = "not measured: use_bias_correction_kl multiplies the KL by one ratio per sequence"
CORRECTED = "not measured: use_bias_correction_kl multiplies the KL by the importance ratio"
SEQUENCE_LEVEL = "not measured: this loss clips one ratio per sequence"
PER_TOKEN = (
    *kl.METRICS,
    *ratios.METRICS,
    *ratios.ROLLOUT,
    *ratios.REFERENCE,
    "policy.loss_tokens",
    *(f"numerics.nonfinite_{what}" for what in _TENSORS),
)
OF_OLD = (*ratios.METRICS, "numerics.nonfinite_old", "numerics.nonfinite_ratios")
_LOGPROBS = ("old_per_token_logps", "ref_per_token_logps", "sampling_per_token_logps")
_CLIPS = ("ratio.clip_low_share", "ratio.clip_high_share", "ratio.clip_share")
_CORRECTED = ("kl.grad_norm", *OF_PULL)


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroBatch:
    """``inputs`` is TRL's own dict, ``logp`` (B, T) the kept log-probs of the training call.

    ``entropy`` (B, T) comes with them where this TRL computes it. ``advantages_told`` where this step's generation
    has told them already.
    """

    inputs: Mapping[str, Any]
    logp: Tensor | None
    loss: Tensor
    sample_offset: int
    vocabulary: int | None
    entropy: Tensor | None = None
    advantages_told: bool = False


def pieces(trainer: Any, batch: MicroBatch) -> Iterator[Piece]:
    """All that one micro-batch tells, in pieces that add up."""
    yield "the loss", partial(of_loss, batch.loss / facts.divided_later(trainer))
    inputs, logp = batch.inputs, batch.logp
    mask = loss_mask(inputs)
    if mask is None or logp is None or logp.shape != mask.shape:
        reason = places.LIGER if facts.hides_logprobs(trainer) else NO_LOGPROBS
        yield "log-probs", partial(absent, PER_TOKEN, reason, batch.loss)
        return
    old, ref, sampled = (inputs.get(key) for key in _LOGPROBS)
    where: dict[str, Any] = {"ids": inputs["completion_ids"], "sample_offset": batch.sample_offset}
    yield "loss tokens", partial(gradients.measure_loss_tokens, mask)
    yield "the trainer's log-probs", partial(census_of, {"logp": logp, "ref": ref, "old": old}, mask, where)
    yield from _written(trainer, batch, mask)
    yield from _sampler(old if old is not None else logp, sampled, mask, where)
    yield "ratios to the reference", partial(_over_reference, trainer, logp, ref, mask, where)
    if old is None:
        reason = ratios.NO_OLD if inputs.get("old_logps") is None else SEQUENCE_PULL
        yield "ratios", partial(absent, OF_OLD, reason, logp)
    else:
        yield "finite ratios", partial(nonfinite.measure_nonfinite_ratios, logp, old, mask, **where)
    yield from _with_advantages(trainer, batch, logp, mask)


def _with_advantages(trainer: Any, batch: MicroBatch, logp: Tensor, mask: Tensor) -> Iterator[Piece]:
    advantages = batch.inputs.get("advantages")
    if advantages is None:
        return
    if not batch.advantages_told:
        yield "advantages", partial(measure_advantages, advantages, sample_offset=batch.sample_offset)
    if not facts.rewards_hold_kl(trainer):  # there its part of the advantages is told instead
        yield "the policy's pull", partial(measure_pull, trainer, batch.inputs, logp, mask, advantages)
    yield "KL", partial(_kl, trainer, batch, logp, mask)
    if batch.inputs.get("old_per_token_logps") is not None:
        yield "ratios", partial(_ratios, trainer, batch, logp, mask, advantages)


def withheld(trainer: Any) -> dict[str, str]:
    """Metrics whose closed form does not hold for this trainer's loss, with the reason."""
    if facts.rewards_hold_kl(trainer):
        return dict.fromkeys(OF_LOSS, NOT_IN_LOSS)
    if getattr(trainer, "importance_sampling_level", "token") == "token":
        return {}
    found = dict.fromkeys(_CLIPS, SEQUENCE_LEVEL)
    return found | (dict.fromkeys(_CORRECTED, SEQUENCE_CORRECTED) if facts.corrects_kl(trainer) else {})


def loss_mask(inputs: Mapping[str, Any]) -> Tensor | None:
    """What the loss trains on: completion tokens without padding and without what a tool wrote."""
    mask: Tensor | None = inputs.get("completion_mask")
    tools = inputs.get("tool_mask")
    return mask if mask is None or tools is None else mask * tools


def shows_entropy(batch: MicroBatch) -> bool:
    """Whether the entropy of each token can be measured, so that the trainer's own mean is not needed."""
    mask = loss_mask(batch.inputs)
    if mask is None or batch.logp is None or batch.entropy is None:
        return False
    return batch.logp.shape == mask.shape == batch.entropy.shape


def census_of(logprobs: Mapping[str, Tensor | None], mask: Tensor, where: Mapping[str, Any]) -> Reduction:
    given = {name: value for name, value in logprobs.items() if value is not None}
    return nonfinite.measure_nonfinite(given, mask, **where)


def _written(trainer: Any, batch: MicroBatch, mask: Tensor) -> Iterator[Piece]:
    """How certain the policy was, and whether the loss trains on what it did not choose.

    Without tools TRL's completions are the policy's own; what a rollout function of the user's puts in beside them
    only its mask tells.
    """
    inputs = batch.inputs
    if batch.entropy is not None and shows_entropy(batch):
        yield "entropy", partial(measure_entropy, batch.entropy, mask)
    else:
        yield "entropy", partial(absent, OF_ENTROPY, NO_ENTROPY, mask)
    chosen = inputs.get("tool_mask")
    if chosen is not None:
        where: dict[str, Any] = {"sample_offset": batch.sample_offset, "vocabulary": batch.vocabulary}
        yield "forced tokens", partial(measure_forced, chosen, mask, inputs["completion_ids"], **where)
    elif getattr(trainer, "rollout_func", None) is None:
        yield "forced tokens", partial(_counted, {"policy.forced": 0}, mask)


def _sampler(trained: Tensor, sampled: Tensor | None, mask: Tensor, where: Mapping[str, Any]) -> Iterator[Piece]:
    if sampled is None:
        names = (*ratios.ROLLOUT, "numerics.nonfinite_rollout")
        yield "the sampler's log-probs", partial(absent, names, NO_SAMPLER, trained)
        return
    yield "the sampler's log-probs", partial(census_of, {"rollout": sampled}, mask, where)
    yield "ratios to the sampler", partial(ratios.measure_rollout, trained, sampled, mask, **where)


def _over_reference(
    trainer: Any, logp: Tensor, ref: Tensor | None, mask: Tensor, where: Mapping[str, Any]
) -> Reduction:
    if ref is None:
        reason = no_reference(trainer)
        return absent((*ratios.REFERENCE, "numerics.nonfinite_reference"), reason, logp)
    return ratios.measure_reference(logp, ref, mask, **where)


def no_reference(trainer: Any) -> str:
    """Why there are no reference log-probs."""
    if facts.kl_coef(trainer) and facts.rewards_hold_kl(trainer):
        return IN_REWARD
    return facts.BETA_IS_ZERO if facts.kl_coef(trainer) == 0 else NO_REFERENCE_IN_LOSS


def _counted(counts: Mapping[str, int], like: Tensor) -> Reduction:
    """What is known without a look at a tensor, in the form of the rest."""
    nothing = torch.zeros(0, dtype=torch.float64, device=like.device)
    return Reduction(parts=(nothing,), build=lambda parts: Tally(counts=counts))


def _kl(trainer: Any, batch: MicroBatch, logp: Tensor, mask: Tensor) -> Reduction:
    """With TRL's bias correction the loss holds k3 * r, whose derivative r * (k3' + k3) is r times that of k2."""
    old, ref, coefficient = *(batch.inputs.get(key) for key in _LOGPROBS[:2]), facts.kl_coef(trainer)
    if ref is None or not coefficient:
        return absent(kl.METRICS, no_reference(trainer), logp)
    weight, corrected = weights(trainer, batch.inputs, mask), facts.corrects_kl(trainer)
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


def _ratios(trainer: Any, batch: MicroBatch, logp: Tensor, mask: Tensor, advantages: Tensor) -> Reduction:
    eps_low, eps_high = clip_range(trainer)
    return ratios.measure_ratios(
        logp,
        batch.inputs["old_per_token_logps"],
        mask,
        advantages,
        batch.inputs["completion_ids"],
        eps_low=eps_low,
        eps_high=eps_high,
        sample_offset=batch.sample_offset,
    )
