"""A policy small enough to be a table (the next token's logits by the last one), its tokenizer and its prompts."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import torch
from torch import Tensor

PROMPT, RESPONSE, GROUP = 4, 8, 4
END = "<|im_end|>"
WORDS = ("a", "b", "c", "d", "e", "f", "g", "h", "<tool>")


def make_tokenizer() -> Any:
    """Ids 0 … 255 are bytes, then ``<tool>``, the end of turn and padding."""
    from tokenizers import Tokenizer, decoders, pre_tokenizers
    from tokenizers.models import BPE
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    core = Tokenizer(BPE({letter: place for place, letter in enumerate(alphabet)}, []))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core, eos_token=END, pad_token="<pad>", padding_side="left"
    )
    tokenizer.add_special_tokens({"additional_special_tokens": ["<tool>"]})
    return tokenizer


class Policy:
    """Logits (V, V); only ids of a few letters and the end of turn can be drawn."""

    def __init__(self, tokenizer: Any, *, seed: int = 3) -> None:
        self.end, self.pad = int(tokenizer.eos_token_id), int(tokenizer.pad_token_id)
        size = len(tokenizer)
        letters = [tokenizer.convert_tokens_to_ids(word) for word in WORDS[:-1]]
        allowed = torch.tensor([*letters, self.end])
        draw = torch.Generator().manual_seed(seed)
        start = torch.full((size, size), -40.0)
        start[:, allowed] = torch.randn(size, len(allowed), generator=draw)
        self.logits = start.requires_grad_()
        self.optimizer = torch.optim.Adam([self.logits], lr=0.05)
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda step: 1.0)

    def sample(self, last: Tensor, draw: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
        """Ids, mask and log-probs (B, R) after the last prompt ids (B,); an answer ends with the end of turn."""
        chances = torch.log_softmax(self.logits.detach(), -1)
        ids = torch.full((last.shape[0], RESPONSE), self.pad)
        mask, logp = torch.zeros_like(ids), torch.zeros(ids.shape)
        alive = torch.ones(last.shape[0], dtype=torch.bool)
        for place in range(RESPONSE):
            drawn = torch.multinomial(chances[last].exp(), 1, generator=draw).squeeze(1)
            ids[alive, place], mask[alive, place] = drawn[alive], 1
            logp[alive, place] = chances[last, drawn][alive]
            alive, last = alive & (drawn != self.end), drawn
        return ids, mask, logp

    def logp(self, last: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
        """Log-probs and entropies (B, R) of ids after the last prompt ids (B,)."""
        before = torch.cat([last[:, None], ids[:, :-1]], 1)
        found = torch.log_softmax(self.logits[before], -1)
        entropy = -(found.exp() * found).sum(-1)
        return found.gather(-1, ids[..., None]).squeeze(-1), entropy

    def digest(self) -> str:
        return hashlib.sha256(self.logits.detach().numpy().tobytes()).hexdigest()


def score(ids: Tensor, mask: Tensor, tokenizer: Any) -> Tensor:
    """(B,) the share of a's in an answer."""
    wanted = tokenizer.convert_tokens_to_ids("a")
    return ((ids == wanted) * mask).sum(1).float() / mask.sum(1).clamp(min=1)


class Prompts(torch.utils.data.Dataset):  # type: ignore[type-arg]
    """Rows as every release's own dataset gives them."""

    def __init__(self, tokenizer: Any, size: int, *, messages_only: bool = False) -> None:
        self._tokenizer, self._size, self._messages_only = tokenizer, size, messages_only

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, place: int) -> dict[str, Any]:
        text = WORDS[place % 8] + WORDS[(place // 8 + 1) % 8]
        ids = self._tokenizer(text)["input_ids"]
        padding = PROMPT - len(ids)
        mask = torch.tensor([0] * padding + [1] * len(ids))
        tensors: dict[str, Any] = {
            "input_ids": torch.tensor([self._tokenizer.pad_token_id] * padding + ids),
            "attention_mask": mask,
            "position_ids": (mask.cumsum(0) - 1).clamp(min=0),
            "raw_prompt_ids": ids,
        }
        return {
            # since 0.7 the agent loop makes ids of the messages
            **({"dummy_tensor": torch.tensor([0])} if self._messages_only else tensors),
            "raw_prompt": [{"role": "user", "content": text}],
            "data_source": "toy",
            "reward_model": {"style": "rule", "ground_truth": "a"},
            "extra_info": {"index": place},
            "index": place,
        }


def collate(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Tensors are stacked, all else becomes an array of objects."""
    found: dict[str, Any] = {}
    for key in rows[0]:
        values = [row[key] for row in rows]
        if isinstance(values[0], Tensor):
            found[key] = torch.stack(values)
            continue
        column = np.empty(len(values), dtype=object)
        column[:] = values
        found[key] = column
    return found
