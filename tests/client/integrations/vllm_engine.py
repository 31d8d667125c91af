"""Stands in for a vLLM server at TRL's own client: an engine of the policy's size that tells its log-probs.

It holds a copy of the weights and takes the trainer's, as vLLM does, so its log-probs are the trainer's up to what
is planted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import Qwen2ForCausalLM

from tests.client.integrations import tiny

Spoil = Callable[[int, list[list[int]], list[list[float | None]]], None]
"""Changes a generation's log-probs in place: (generation from 1 on, ids, log-probs)."""


class Engine:
    """What TRL's `VLLMClient` is for the trainer."""

    def __init__(self, policy: Path, spoil: Spoil) -> None:
        self._model = Qwen2ForCausalLM.from_pretrained(str(policy)).eval()
        self._stop = int(self._model.config.vocab_size) - 6  # the byte-level alphabet's 256, then <eos>
        self._spoil, self.generations, self.pushes = spoil, 0, 0
        self._dice = torch.Generator().manual_seed(7)

    def client(self, *_: Any, **__: Any) -> Engine:
        return self

    def init_communicator(self, device: Any) -> None:
        """Weights are handed over in memory."""

    def get_server_info(self) -> dict[str, Any]:
        return {"model_config": {"logprobs_mode": "processed_logprobs"}}

    def update_named_params(self, metadata: Any, parameters: Iterable[tuple[str, Tensor]]) -> None:
        self._model.load_state_dict({name: value.detach().clone() for name, value in parameters}, strict=False)
        self.pushes += 1

    def reset_prefix_cache(self) -> None:
        """Nothing is cached."""

    def generate(self, prompts: list[list[int]], n: int, max_tokens: int, **_: Any) -> dict[str, Any]:
        self.generations += 1
        written = [self._complete(prompt, max_tokens) for prompt in prompts for _ in range(n)]
        ids, logps = [row for row, _ in written], [row for _, row in written]
        self._spoil(self.generations, ids, logps)
        return {
            "prompt_ids": prompts,
            "completion_ids": ids,
            "logprobs": [[[value] for value in row] for row in logps],
            "logprob_token_ids": [[[token] for token in row] for row in ids],
        }

    @torch.no_grad()
    def _complete(self, prompt: list[int], most: int) -> tuple[list[int], list[float | None]]:
        ids: list[int] = []
        logps: list[float | None] = []
        while len(ids) < most and self._stop not in ids:
            logits = self._model(torch.tensor([prompt + ids])).logits[0, -1]
            chances = logits.double().log_softmax(-1)
            token = int(torch.multinomial(chances.exp(), 1, generator=self._dice))
            ids.append(token)
            logps.append(float(chances[token]))
        return ids, logps


def make_trainer(monkeypatch: Any, make: Callable[..., Any], engine: Engine, **settings: Any) -> Any:
    """A trainer that samples with ``engine`` through TRL's own path for a vLLM server."""
    monkeypatch.setattr("trl.generation.vllm_generation.is_vllm_available", lambda *_, **__: True)
    monkeypatch.setattr("trl.generation.vllm_generation.VLLMClient", engine.client)
    return make(use_vllm=True, vllm_mode="server", max_completion_length=tiny.CAP, **settings)
