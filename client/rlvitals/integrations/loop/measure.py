"""One micro-batch of a loop's loss → reductions. Nothing here waits for a GPU; every tensor is detached."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rlvitals.guard import Guard
from rlvitals.integrations.loop.facts import NO_WEIGHTS, Facts
from rlvitals.integrations.pieces import Piece, absent, of_loss
from rlvitals.probes import gradients, kl, nonfinite, ratios
from rlvitals.probes.advantages import measure_advantages
from rlvitals.probes.arguments import ProbeArgumentError
from rlvitals.probes.arrays import Floats
from rlvitals.probes.entropy import measure_entropy
from rlvitals.probes.forced import measure_forced
from rlvitals.probes.logits import measure_logits
from rlvitals.probes.reduction import Reduction
from rlvitals.probes.tally import Tally

NO_LOGPROBS = "vitals.loss was given no logp"
NO_REFERENCE = "vitals.loss was given no ref"
NO_OLD = "vitals.loss was given no old: the ratio is 1 by construction, or the loop keeps it to itself"
NO_SAMPLER = "vitals.loss was given no rollout: the sampling engine's log-probs"
NO_ADVANTAGES = "vitals.loss was given no advantages"
OF_LOGPROBS = (
    *kl.METRICS,
    *ratios.METRICS,
    *ratios.ROLLOUT,
    *ratios.REFERENCE,
    *(f"numerics.nonfinite_{what}" for what in ("logprobs", "policy", "reference", "old", "rollout", "ratios")),
)
_CLIPS = {"ratio.clipped_low": "ratio.clip_low_share", "ratio.clipped_high": "ratio.clip_high_share"}


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroBatch:
    """What `Vitals.loss` was given, as detached tensors; None where it was not given or is no tensor."""

    logp: Tensor | None = None
    old: Tensor | None = None
    ref: Tensor | None = None
    rollout: Tensor | None = None
    advantages: Tensor | None = None
    mask: Tensor | None = None
    ids: Tensor | None = None
    entropy: Tensor | None = None
    chosen: Tensor | None = None
    logits: Tensor | None = None
    weights: Tensor | None = None
    rows: Tensor | None = None
    num_items_in_batch: Any = None
    sample_offset: int = 0
    vocabulary: int | None = None
    step: int = 0
    advantages_told: bool = False

    @classmethod
    def of(cls, given: Mapping[str, Any], **where: Any) -> MicroBatch:
        """Each is read apart, so that one of the wrong kind costs the others nothing."""
        read: dict[str, Any] = {}
        for name, value in given.items():
            if value is not None:
                with Guard(f"reading {name}"):
                    read[name] = tensor(value)
        found = cls(**read, **where)
        if found.mask is None and found.logp is not None and found.logp.dim() == 2:
            return replace(found, mask=torch.ones_like(found.logp, dtype=torch.bool))
        return found

    @property
    def devices(self) -> Iterator[torch.device]:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Tensor):
                yield value.device


def tensor(value: Any) -> Tensor:
    """A tensor without its graph; an array or lists are copied."""
    return value.detach() if isinstance(value, Tensor) else torch.from_numpy(np.array(value))


def pieces(facts: Facts, coefficient: float | None, loss: Any, batch: MicroBatch) -> Iterator[Piece]:
    """All that one micro-batch tells, in pieces that add up, each of which may fail without the others."""
    if loss is not None:
        yield "the loss", lambda: of_loss(tensor(loss))
    if batch.mask is not None:
        yield "loss tokens", partial(gradients.measure_loss_tokens, batch.mask)
        yield from _by_token(batch, batch.mask)
    if batch.logits is not None:
        yield "logits", partial(_logits, batch, batch.logits)
    if batch.advantages is not None and not batch.advantages_told:
        yield "advantages", partial(measure_advantages, batch.advantages, sample_offset=batch.sample_offset)
    if batch.logp is None or batch.mask is None:
        yield "log-probs", partial(absent, OF_LOGPROBS, NO_LOGPROBS, torch.zeros(0))
        return
    yield from _of_logprobs(facts, coefficient, batch, batch.logp, batch.mask)


def _by_token(batch: MicroBatch, mask: Tensor) -> Iterator[Piece]:
    if batch.entropy is not None:
        yield "entropy", partial(measure_entropy, batch.entropy, mask)
    if batch.chosen is not None and batch.ids is not None:
        where: dict[str, Any] = {"sample_offset": batch.sample_offset, "vocabulary": batch.vocabulary}
        yield "forced tokens", partial(measure_forced, batch.chosen, mask, batch.ids, **where)


def _logits(batch: MicroBatch, logits: Tensor) -> Reduction:
    return measure_logits(logits, batch.mask, seed=batch.step, sample_offset=batch.sample_offset)


def _of_logprobs(
    facts: Facts, coefficient: float | None, batch: MicroBatch, logp: Tensor, mask: Tensor
) -> Iterator[Piece]:
    where: dict[str, Any] = {"ids": batch.ids, "sample_offset": batch.sample_offset}
    for name, value in (("logp", logp), ("ref", batch.ref), ("old", batch.old), ("rollout", batch.rollout)):
        # one at a time: the shape of one is no fault of the others
        if value is not None:
            yield f"non-finite {name}", partial(nonfinite.measure_nonfinite, {name: value}, mask, **where)
    yield from _to_sampler(batch, logp, mask, where)
    yield from _to_old(facts, batch, logp, mask, where)
    if batch.ref is None:
        names = (*kl.METRICS, *ratios.REFERENCE, "numerics.nonfinite_reference")
        yield "the reference", partial(absent, names, NO_REFERENCE, logp)
    else:
        yield "ratios to the reference", partial(ratios.measure_reference, logp, batch.ref, mask, **where)
        yield "KL", partial(_kl, facts, coefficient, batch, logp, batch.ref, mask)
    if batch.advantages is not None and _weighted(facts, batch):
        yield "the policy's pull", partial(_pull, facts, batch, logp, batch.advantages, mask)


def _to_sampler(batch: MicroBatch, logp: Tensor, mask: Tensor, where: Mapping[str, Any]) -> Iterator[Piece]:
    if batch.rollout is None:
        yield "the sampler", partial(absent, (*ratios.ROLLOUT, "numerics.nonfinite_rollout"), NO_SAMPLER, logp)
        return
    trained = batch.old if batch.old is not None else logp
    yield "ratios to the sampler", partial(ratios.measure_rollout, trained, batch.rollout, mask, **where)


def _to_old(
    facts: Facts, batch: MicroBatch, logp: Tensor, mask: Tensor, where: Mapping[str, Any]
) -> Iterator[Piece]:
    if batch.old is None:
        names = (*ratios.METRICS, "numerics.nonfinite_old", "numerics.nonfinite_ratios")
        yield "ratios", partial(absent, names, NO_OLD, logp)
        return
    yield "finite ratios", partial(nonfinite.measure_nonfinite_ratios, logp, batch.old, mask, **where)
    yield "ratios", partial(_ratios, facts, batch, logp, batch.old, mask)


def _ratios(facts: Facts, batch: MicroBatch, logp: Tensor, old: Tensor, mask: Tensor) -> Reduction:
    advantages = batch.advantages
    found = ratios.measure_ratios(
        logp,
        old,
        mask,
        logp.new_zeros(logp.shape[0]) if advantages is None else advantages,
        batch.ids,
        eps_low=facts.epsilon,
        eps_high=facts.epsilon if facts.epsilon_high is None else facts.epsilon_high,
        sample_offset=batch.sample_offset,
    )
    return found if advantages is not None else replace(found, build=partial(_without_clips, found.build))


def _without_clips(build: Callable[[Sequence[Floats]], Tally], parts: Sequence[Floats]) -> Tally:
    """Which side clips depends on the sign of the advantage."""
    tally = build(parts)
    counts = {name: count for name, count in tally.counts.items() if name not in _CLIPS}
    return replace(tally, counts=counts) + Tally.absent(tuple(_CLIPS.values()), NO_ADVANTAGES)


def _kl(
    facts: Facts, coefficient: float | None, batch: MicroBatch, logp: Tensor, ref: Tensor, mask: Tensor
) -> Reduction:
    """Where weights or coefficient are unknown 1 stands for them: what depends on them is withheld (`Facts`)."""
    weight = weights(facts, batch, mask) if _weighted(facts, batch) else logp.new_ones((1, 1))
    return kl.measure_kl(
        logp,
        ref,
        mask,
        weight,
        coef=1.0 if coefficient is None else coefficient,
        estimator=facts.kl_estimator,
        clamp=facts.kl_clamp,
        ids=batch.ids,
        sample_offset=batch.sample_offset,
        vocabulary=batch.vocabulary,
    )


def _pull(facts: Facts, batch: MicroBatch, logp: Tensor, advantages: Tensor, mask: Tensor) -> Reduction:
    weight, high = weights(facts, batch, mask), facts.epsilon if facts.epsilon_high is None else facts.epsilon_high
    clips = facts.loss_type is None or facts.loss_type in gradients.CLIPPED
    return gradients.measure_policy_pull(
        logp,
        batch.old,
        advantages,
        mask,
        weight,
        clip=(facts.epsilon, high) if clips else None,
        cap=high if facts.loss_type == "cispo" else None,
    )


def _weighted(facts: Facts, batch: MicroBatch) -> bool:
    return batch.weights is not None or facts.loss_type is not None


def weights(facts: Facts, batch: MicroBatch, mask: Tensor) -> Tensor:
    """The weight that the loop's loss gives each token. Raises `ProbeArgumentError` where nobody says it."""
    if batch.weights is not None:
        return batch.weights
    if facts.loss_type is None:
        raise ProbeArgumentError("weights", "the weight of each token", NO_WEIGHTS)
    return gradients.weights_for(
        facts.loss_type,
        mask,
        accumulation=facts.accumulation,
        max_completion_length=facts.length_cap,
        num_items_in_batch=batch.num_items_in_batch,
    )
