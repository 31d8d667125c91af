"""The KL term's gradient by the parameters, on the steps on which it is asked for: a pass of its own each time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from rlvitals.integrations.trl import facts, measure
from rlvitals.integrations.trl.optimizer import DEEPSPEED
from rlvitals.integrations.trl.pull import weights
from rlvitals.probes.parameter_gradient import METRIC, tally_parameter_gradient
from rlvitals.probes.tally import Tally

NO_METHOD = "not measured: this trainer does not show how it computes log-probs"


def measure_kl_gradient(trainer: Any, inputs: Mapping[str, Any], *, step: int, every: int) -> Tally:
    """Of one micro-batch: twice its memory and time, so for the first of a step only. ``every`` 0 = never.

    The model is called as it is, not through its wrapper for several ranks, so that no collective takes place.
    """
    if every and getattr(trainer, "is_deepspeed_enabled", False):
        return Tally.absent((METRIC,), DEEPSPEED)
    ref, mask = inputs.get("ref_per_token_logps"), measure.loss_mask(inputs)
    logprobs = getattr(trainer, "_get_per_token_logps_and_entropies", None)
    if every and (ref is None or mask is None or logprobs is None):
        reason = NO_METHOD if logprobs is None else measure.no_reference(trainer)
        return Tally.absent((METRIC,), reason)
    model = trainer.accelerator.unwrap_model(trainer.model)

    def kl_term() -> Tensor:
        # the method itself: through our hook it would be taken for the loss's own
        logp = _logprobs(getattr(logprobs, "__wrapped__", logprobs), model, inputs)
        return kl_of_loss(trainer, inputs, logp)

    return tally_parameter_gradient(model.parameters(), kl_term, step=step, every=every)


def kl_of_loss(trainer: Any, inputs: Mapping[str, Any], logp: Tensor) -> Tensor:
    """The part of the micro-batch's loss that the KL coefficient multiplies, that included."""
    mask = measure.loss_mask(inputs)
    if mask is None:
        raise ValueError("inputs: expected a completion mask")
    distance = inputs["ref_per_token_logps"] - logp
    value = distance.exp() - distance - 1
    if facts.corrects_kl(trainer):
        old = inputs.get("old_per_token_logps")
        value = value * (logp - (logp.detach() if old is None else old)).exp()
    weight = weights(trainer, inputs, mask)
    term: Tensor = float(facts.kl_coef(trainer) or 0.0) * (weight * value * mask).sum()
    return term


def _logprobs(method: Any, model: Any, inputs: Mapping[str, Any]) -> Tensor:
    ids = torch.cat([inputs["prompt_ids"], inputs["completion_ids"]], 1)
    seen = torch.cat([inputs["prompt_mask"], inputs["completion_mask"]], 1)
    result = method(model, ids, seen, inputs["completion_ids"].shape[1])
    logp: Tensor = result[0] if isinstance(result, tuple) else result
    return logp
