"""verl's columns of one batch, by its own names, → what a loop tells: ids, masks, log-probs, rewards, groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rlvitals.guard import Guard, attempt
from rlvitals.integrations.verl import agent_r1

LOGPROBS = {"old": "old_log_probs", "ref": "ref_log_prob", "rollout": "rollout_log_probs"}
WRITTEN = "written_mask"
"""A column of ours, no trainer's."""
MASKS = ("action_mask", "response_mask", "loss_mask")
"""Which tokens the policy wrote and the loss counts, in the order of preference (agents have an action mask)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """B completions of at most T tokens without rows that only fill the batch up; None where there is no column.

    ``lengths`` (B,) count the tools' tokens too, ``mask`` (B, T) leaves them out; ``rewards`` (B,) are what the
    reward function gave, ``advantages`` (B, T); ``groups`` (B,) are numbers; ``prompts`` (B,) ids without padding.
    ``written`` (B, T) are the tokens that the policy chose, where something else than the loss mask says it.
    """

    ids: Tensor
    lengths: Tensor
    mask: Tensor
    written: Tensor | None = None
    old: Tensor | None = None
    ref: Tensor | None = None
    rollout: Tensor | None = None
    advantages: Tensor | None = None
    entropy: Tensor | None = None
    rewards: Tensor | None = None
    groups: np.ndarray[Any, Any] | None = None
    prompts: Sequence[Sequence[int]] | None = None

    @property
    def size(self) -> int:
        return int(self.ids.shape[0])

    @property
    def width(self) -> int:
        return int(self.ids.shape[1])

    @property
    def chosen(self) -> Tensor:
        """(B,) lengths where the policy wrote all of it, else the mask (B, T)."""
        mask = self.mask if self.written is None else self.written
        whole = (mask.sum(1) == self.lengths).all()
        return self.lengths if whole else mask

    @property
    def advantage(self) -> Tensor | None:
        """(B,) the first token's, where the tokens of a completion share one; (B, T) where they do not."""
        if self.advantages is None or self.advantages.dim() == 1:
            return self.advantages
        first = self.advantages.gather(1, self.mask.int().argmax(1, keepdim=True))
        shared = torch.where(self.mask, self.advantages, first)
        same = (shared == first) | (shared.isnan() & first.isnan())
        return first.squeeze(1) if bool(same.all()) else self.advantages


def read_batch(columns: Mapping[str, Any]) -> Batch:
    """Raises KeyError where there are no responses. A column that cannot be read counts as not there."""
    responses = columns["responses"]
    ids, lengths = _dense(responses, 0)
    width = ids.shape[1]
    mask = _mask(columns, lengths, width)
    if not _nested(responses):
        lengths = _lengths(columns, mask)
    keep, groups = _kept(columns, ids.shape[0])
    written = columns.get(WRITTEN)

    def take(name: str) -> Tensor | None:
        found: Tensor | None = None
        with Guard(f"reading verl's {name}"):
            value = columns.get(name)
            if value is not None:
                found = fitted(_dense(value, 0.0)[0].detach(), width)[keep]
        return found

    batch = Batch(
        ids=ids[keep],
        lengths=lengths[keep],
        mask=mask[keep],
        written=None if written is None else fitted(written, width).bool()[keep],
        **{name: take(column) for name, column in LOGPROBS.items()},
        advantages=take("advantages"),
        entropy=take("entropy"),
        rewards=_rewards(columns, keep),
        groups=groups,
        prompts=_prompts(columns, keep),
    )
    return batch if WRITTEN in columns else replace(batch, written=_by_the_sampler(batch))


def _by_the_sampler(batch: Batch) -> Tensor | None:
    """(B, T) the tokens that the sampler says it chose, where it says that; see `agent_r1.written`."""
    found: Tensor | None = None
    with Guard("which tokens the policy wrote"):
        found = agent_r1.written({LOGPROBS["rollout"]: batch.rollout, LOGPROBS["old"]: batch.old}, batch.mask)
    return found


def fitted(values: Tensor, width: int) -> Tensor:
    """(B, width): cut, or filled up with zeros, where a jagged column was padded to a width of its own."""
    if values.dim() == 1 or values.shape[1] == width:
        return values
    if values.shape[1] > width:
        return values[:, :width]
    return torch.nn.functional.pad(values, (0, width - values.shape[1]))


def _nested(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_nested


def _dense(value: Any, padding: float) -> tuple[Tensor, Tensor]:
    """(B, T) and the rows' lengths (B,)."""
    if _nested(value):
        lengths = value.offsets().diff() if value.layout is torch.jagged else torch.tensor([len(r) for r in value])
        return torch.nested.to_padded_tensor(value, padding), lengths
    if isinstance(value, Tensor):
        return value, torch.full((value.shape[0],), value.shape[-1])
    rows = [row if isinstance(row, Tensor) else torch.as_tensor(np.asarray(row)) for row in value]
    lengths = torch.tensor([len(row) for row in rows])
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=padding), lengths


def _mask(columns: Mapping[str, Any], lengths: Tensor, width: int) -> Tensor:
    for name in MASKS:
        if columns.get(name) is not None:
            found = fitted(_dense(columns[name], 0)[0], width).bool()
            # an early verl has a loss mask of prompt and response together
            return found if name != "loss_mask" else found[:, -width:]
    if columns.get("attention_mask") is not None:
        return _dense(columns["attention_mask"], 0)[0][:, -width:].bool()
    return torch.arange(width)[None, :] < lengths[:, None]


def _lengths(columns: Mapping[str, Any], mask: Tensor) -> Tensor:
    """Of padded responses: what the attention mask leaves, tools' tokens among it."""
    seen = columns.get("attention_mask")
    written = mask if seen is None else _dense(seen, 0)[0][:, -mask.shape[1] :].bool()
    places = torch.arange(1, mask.shape[1] + 1)
    lengths: Tensor = (written * places).amax(1) if mask.shape[1] else torch.zeros(mask.shape[0], dtype=torch.long)
    return lengths


def _kept(columns: Mapping[str, Any], rows: int) -> tuple[Tensor, np.ndarray[Any, Any] | None]:
    """Numbers of the rows that are no copies made to fill a batch up, group after group; and their groups."""
    padding, sample = columns.get("is_padding"), columns.get("sample_mask")
    keep = np.ones(rows, dtype=bool)
    if padding is not None:
        keep = ~np.asarray(padding, dtype=bool)
    elif sample is not None:
        keep = np.asarray(sample).astype(bool).reshape(rows)
    found = np.flatnonzero(keep)
    groups = _groups(columns.get("uid"))
    if groups is None:
        return torch.from_numpy(found), None
    # verl has dealt rows out to its ranks by their lengths
    found = found[np.argsort(groups[found], kind="stable")]
    return torch.from_numpy(found), groups[found]


def _rewards(columns: Mapping[str, Any], keep: Tensor) -> Tensor | None:
    """(B,) what the reward function gave, before a KL penalty was taken off."""
    for name in ("token_level_scores", "rm_scores", "token_level_rewards"):
        if columns.get(name) is not None:
            scores: Tensor = _dense(columns[name], 0.0)[0].detach()[keep]
            return scores if scores.dim() == 1 else scores.double().sum(1)
    return None


def _groups(uids: Any) -> np.ndarray[Any, Any] | None:
    """(B,) numbers in the order in which groups first come."""
    if uids is None:
        return None
    plain = uids.tolist() if hasattr(uids, "tolist") else list(uids)
    numbers: dict[str, int] = {}
    return np.asarray([numbers.setdefault(str(getattr(uid, "data", uid)), len(numbers)) for uid in plain])


def _prompts(columns: Mapping[str, Any], keep: Tensor) -> list[list[int]] | None:
    prompts = columns.get("prompts")
    if prompts is None:
        return None
    if _nested(prompts):
        rows = [row.tolist() for row in prompts.unbind()]
    else:
        seen, width = columns.get("attention_mask"), prompts.shape[1]
        rows = [
            row.tolist() if seen is None else row[seen[number, :width].bool()].tolist()
            for number, row in enumerate(prompts)
        ]
    return [rows[number] for number in keep.tolist()]


def prompt_texts(batch: Batch, tokenizer: Any) -> list[str] | None:
    """(B,) decoded once for each group; None without a tokenizer."""
    decode = getattr(tokenizer, "decode", None)
    if batch.prompts is None or decode is None:
        return None
    known: dict[tuple[int, ...], str] = {}
    texts = []
    for prompt in map(tuple, batch.prompts):
        if prompt not in known:
            known[prompt] = str(attempt(decode, list(prompt)) or "")
        texts.append(known[prompt])
    return texts
