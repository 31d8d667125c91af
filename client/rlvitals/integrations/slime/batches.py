"""slime's lists of samples and of tensors → the arguments of `Vitals.rollout` and `Vitals.loss`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

Slice = Callable[[Tensor, int, int], Tensor]
"""A sample's response-long tensor, its whole length and its response's → this context-parallel rank's part."""


def of_samples(samples: Sequence[Any], args: Any) -> dict[str, Any]:
    """Arguments of `Vitals.rollout` from slime's flat list of ``Sample``; what samples do not say is left out."""
    flat = [sample for entry in samples for sample in (entry if isinstance(entry, list) else [entry])]
    ids = [list(s.tokens[-s.response_length :]) if s.response_length else [] for s in flat]
    rewards = [_reward(sample, getattr(args, "reward_key", None)) for sample in flat]
    groups = [sample.group_index for sample in flat]
    return {
        "ids": ids,
        "chosen": _written(flat, ids),
        "rewards": None if None in rewards else [float(reward) for reward in rewards],
        "group_ids": None if None in groups else groups,
        "finish_reasons": [str(getattr(sample.status, "value", sample.status)) for sample in flat],
        "prompts": [sample.prompt for sample in flat],
        "texts": [sample.response for sample in flat],
    }


def _reward(sample: Any, key: str | None) -> Any:
    return sample.reward[key] if key and isinstance(sample.reward, Mapping) else sample.reward


def _written(samples: Sequence[Any], ids: Sequence[Sequence[int]]) -> Any:
    """(B,) lengths; a mask (B, T) where tools wrote a part. A mask without a token says that a sample is not to be
    trained on, not that the policy wrote nothing.
    """
    masks = [sample.loss_mask for sample in samples]
    tooled = [
        bool(mask) and len(mask) == len(row) and any(mask) and not all(mask) and not sample.remove_sample
        for mask, row, sample in zip(masks, ids, samples, strict=True)
    ]
    if not any(tooled):
        return [len(row) for row in ids]
    width = max(len(row) for row in ids)
    written = torch.zeros(len(ids), width, dtype=torch.bool)
    for place, (row, mask) in enumerate(zip(ids, masks, strict=True)):
        written[place, : len(row)] = torch.tensor(mask, dtype=torch.bool) if tooled[place] else True
    return written.numpy()


def of_loss(
    args: Any,
    batch: Mapping[str, Any],
    logp: Sequence[Tensor] | None,
    entropy: Sequence[Tensor] | None,
    part: Slice,
) -> dict[str, Any]:
    """Arguments of `Vitals.loss` from one micro-batch. ``logp`` and ``entropy`` are those of this very pass.

    With the sampler's log-probs in the place of the old ones, slime's ratio is that of the two: then there is none
    of the trainer's old policy to the sampler.
    """
    tokens, masks = batch.get("unconcat_tokens") or batch["tokens"], batch["loss_masks"]
    lengths = list(zip(batch["total_lengths"], batch["response_lengths"], strict=True))
    sampled = bool(getattr(args, "use_rollout_logprobs", False))
    rollout, old = batch.get("rollout_log_probs"), batch.get("log_probs")
    mask = [part(m, total, size) for m, (total, size) in zip(masks, lengths, strict=True)]
    ids = [
        part(t[-size:] if size else t[:0], total, size) for t, (total, size) in zip(tokens, lengths, strict=True)
    ]
    found: dict[str, Any] = {
        "logp": _padded(logp),
        "entropy": _padded(entropy),
        "old": _padded(rollout if sampled else old),
        "ref": _padded(batch.get("ref_log_probs")),
        "rollout": None if sampled else _padded(rollout),
        "advantages": _padded(batch.get("advantages")),
        "mask": _padded(mask),
        "ids": _padded(ids),
        "weights": _weights(args, batch, mask),
    }
    return found


def of_rollout_data(args: Any, data: Mapping[str, Any], part: Slice) -> dict[str, Any]:
    """The same from all that a rank has of a rollout, before the update: the old policy stands for the new."""
    found = of_loss(args, data, data.get("log_probs"), None, part)
    return {**found, "old": None, "weights": None, "rollout": _padded(data.get("rollout_log_probs"))}


def _padded(values: Sequence[Any] | None) -> Tensor | None:
    """(B, T), padded on the right; None where the list is missing or holds none."""
    if not values or any(value is None for value in values):
        return None
    return pad_sequence([torch.as_tensor(value).detach().reshape(-1) for value in values], batch_first=True)


def _weights(args: Any, batch: Mapping[str, Any], mask: Sequence[Tensor]) -> Tensor | None:
    """What the loss multiplies a token's term by: the mean over a rollout's tokens, then over the step's rollouts.

    None with a loss per token, whose normaliser is known only when the step ends.
    """
    size = getattr(args, "global_batch_size", None)
    if getattr(args, "calculate_per_token_loss", False) or not size:
        return None
    sums = batch.get("rollout_mask_sums")
    sums = [m.sum() for m in batch["loss_masks"]] if sums is None else sums
    terms = [m.float() / torch.clamp_min(torch.as_tensor(s), 1) / size for m, s in zip(mask, sums, strict=True)]
    return _padded(terms)
