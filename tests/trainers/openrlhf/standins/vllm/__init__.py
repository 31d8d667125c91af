"""Stands in for vLLM where there is no GPU: a small engine on transformers, with the sampled tokens' log-probs.

Written for these tests. It takes over new weights when OpenRLHF sends them (see `vllm.distributed`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import torch

from vllm.distributed.utils import StatelessProcessGroup

__version__ = "0.29.0"


@dataclass
class SamplingParams:
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = -1
    max_tokens: int | None = None
    min_tokens: int = 1
    skip_special_tokens: bool = False
    include_stop_str_in_output: bool = True
    logprobs: int | None = None
    seed: int | None = None


class AsyncEngineArgs:
    def __init__(self, **told: Any) -> None:
        self.model, self.seed = told["model"], told.get("seed", 0)


class AsyncLLMEngine:
    def __init__(self, args: AsyncEngineArgs) -> None:
        from transformers import AutoModelForCausalLM

        self._model = AutoModelForCausalLM.from_pretrained(args.model, dtype=torch.bfloat16).eval()
        self._ends = {self._model.config.eos_token_id, self._model.generation_config.eos_token_id} - {None}
        self._dice = torch.Generator().manual_seed(int(args.seed))
        self._group: StatelessProcessGroup | None = None
        self._weights = dict(self._model.named_parameters())

    @classmethod
    def from_engine_args(cls, args: AsyncEngineArgs) -> AsyncLLMEngine:
        return cls(args)

    @property
    def output_processor(self) -> Any:
        return SimpleNamespace(get_num_unfinished_requests=lambda: 0)

    async def generate(self, prompt: Any, params: SamplingParams, request_id: str) -> AsyncIterator[Any]:
        yield SimpleNamespace(outputs=[self._sample(list(prompt["prompt_token_ids"]), params)])

    async def collective_rpc(self, method: str, args: tuple[Any, ...] = ()) -> None:
        if method == "init_process_group":
            host, port, rank, size = args[0], args[1], args[2], args[3]
            self._group = await asyncio.to_thread(StatelessProcessGroup.create, host, port, rank, size)
        if method == "update_weight" and self._group is not None:
            value = await asyncio.to_thread(self._group.receive)
            with torch.no_grad():
                self._weights[args[0]].copy_(value)

    async def is_sleeping(self) -> bool:
        return False

    async def sleep(self, level: int = 1) -> None: ...

    async def wake_up(self, tags: Any = None) -> None: ...

    async def reset_prefix_cache(self) -> None: ...

    async def pause_generation(self, mode: str = "keep") -> None: ...

    async def resume_generation(self) -> None: ...

    @torch.no_grad()
    def _sample(self, prompt: list[int], params: SamplingParams) -> Any:
        ids, told, limit = list(prompt), [], params.max_tokens or 16
        while len(ids) - len(prompt) < limit:
            logits = self._model(torch.tensor([ids])).logits[0, -1].float() / (params.temperature or 1.0)
            logprobs = logits.log_softmax(-1)
            token = int(torch.multinomial(logprobs.exp(), 1, generator=self._dice))
            ids.append(token)
            told.append({token: SimpleNamespace(logprob=float(logprobs[token]))})
            if token in self._ends:
                break
        ended = ids[-1] in self._ends
        return SimpleNamespace(
            token_ids=ids[len(prompt) :],
            logprobs=told if params.logprobs is not None else None,
            finish_reason="stop" if ended else "length",
        )
