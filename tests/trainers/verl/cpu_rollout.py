"""An engine that samples with plain transformers on a CPU, returns log-probs, and takes new weights by Ray.

Draws depend on the step, the prompt and how often it was asked for only, so that two jobs sample alike.
``CPU_ROLLOUT_BIAS=<token id>:<from step>:<logit>`` makes it prefer a token that the policy does not, as where an
engine ends turns by force. ``CPU_POISON_STEP=<step>`` makes that step's gradient NaN on the workers.
``CPU_ROLLOUT_DIGESTS=<file>`` gets a line for each time that weights arrive: the step, and their hash.
"""

from __future__ import annotations

import hashlib
import os
import sys
import zlib
from collections import Counter
from typing import Any

import ray
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
from verl.workers.rollout.base import BaseRollout
from verl.workers.rollout.replica import RolloutReplica, TokenOutput

NAME = "cpu_server_0"


class CpuServer:
    """One model; requests are answered one after the other."""

    def __init__(self, path: str, response_length: int, stop_ids: list[int]) -> None:
        torch.set_num_threads(1)
        self.model = AutoModelForCausalLM.from_pretrained(path, attn_implementation="eager").float().eval()
        self.response_length, self.stop_ids = response_length, set(stop_ids)
        self.step, self._asked = 0, Counter()
        token, since, logit = (os.environ.get("CPU_ROLLOUT_BIAS") or "-1:0:0").split(":")
        self._bias = int(token), int(since), float(logit)

    def load(self, weights: list[tuple[str, Any]], global_steps: int | None) -> None:
        missing, unexpected = self.model.load_state_dict(dict(weights), strict=False)
        assert not unexpected, unexpected
        assert len(weights) > len(missing)
        if global_steps is not None:
            self.step = int(global_steps)
        self._asked.clear()
        _note_digest(self.step, weights)

    async def generate(
        self, prompt_ids: list[int], sampling_params: dict[str, Any], request_id: str, **_: Any
    ) -> TokenOutput:
        prompt = [int(token) for token in prompt_ids]
        key = f"{self.step}:{prompt}"
        self._asked[key] += 1
        dice = torch.Generator().manual_seed(zlib.crc32(f"{key}:{self._asked[key]}".encode()))
        tokens, logps = self._draw(prompt, float(sampling_params.get("temperature", 1.0)), dice)
        return TokenOutput(
            token_ids=tokens,
            log_probs=logps,
            stop_reason="completed",
            extra_fields={"global_steps": self.step},
        )

    @torch.no_grad()
    def _draw(self, prompt: list[int], temperature: float, dice: torch.Generator) -> tuple[list[int], list[float]]:
        """Ids and their log-probs under what they were drawn from, as an engine says them."""
        tokens: list[int] = []
        logps: list[float] = []
        token, since, logit = self._bias
        for _ in range(self.response_length):
            logits = self.model(torch.tensor([prompt + tokens])).logits[0, -1]
            if token >= 0 and self.step + 1 >= since:
                logits[token] += logit
            drawn = torch.log_softmax(logits / max(temperature, 1e-6), 0)
            chosen = int(torch.multinomial(drawn.exp(), 1, generator=dice)) if temperature else int(drawn.argmax())
            tokens.append(chosen)
            logps.append(float(drawn[chosen]))
            if chosen in self.stop_ids:
                break
        return tokens, logps

    async def wake_up(self, *_: Any, **__: Any) -> None:
        pass

    async def sleep(self, *_: Any, **__: Any) -> None:
        pass

    async def abort_all_requests(self, *_: Any, **__: Any) -> None:
        pass

    async def resume_generation(self, *_: Any, **__: Any) -> None:
        pass

    async def clear_kv_cache(self, *_: Any, **__: Any) -> None:
        pass

    async def release_kv_cache(self, *_: Any, **__: Any) -> None:
        pass

    async def resume_kv_cache(self, *_: Any, **__: Any) -> None:
        pass


def _note_digest(step: int, weights: list[tuple[str, Any]]) -> None:
    file = os.environ.get("CPU_ROLLOUT_DIGESTS")
    if file:
        digest = hashlib.sha256()
        for name, value in sorted(weights):
            digest.update(name.encode() + value.contiguous().numpy().tobytes())
        with open(file, "a") as lines:
            lines.write(f"{step} {digest.hexdigest()}\n")


def poison_next_step() -> None:
    """The next gradient of this worker is NaN, before verl looks at it."""
    from verl.workers.engine.fsdp.transformer_impl import FSDPEngine

    original = FSDPEngine.optimizer_step

    def poisoned(engine: Any) -> Any:
        FSDPEngine.optimizer_step = original
        parameter = next(p for p in engine.module.parameters() if p.grad is not None)
        parameter.grad.to_local().view(-1)[0] = float("nan")
        return original(engine)

    FSDPEngine.optimizer_step = poisoned


class CpuAdapter(BaseRollout):
    """In the trainer's worker: hands weights over."""

    async def resume(self, tags: list[str]) -> None:
        pass

    async def release(self) -> None:
        pass

    async def update_weights(self, weights: Any, global_steps: int | None = None, **_: Any) -> None:
        rank = torch.distributed.get_rank() if torch.distributed.is_initialized() else 0
        # full tensors are collective to make: every rank walks through them
        state = [(name, tensor.detach().cpu().clone().float()) for name, tensor in weights]
        if global_steps is not None and int(os.environ.get("CPU_POISON_STEP") or -1) == int(global_steps) + 1:
            poison_next_step()
        if rank == 0:
            await ray.get_actor(NAME).load.remote(state, global_steps)


def sort_batches() -> None:
    """Rows come in the order in which they were done: by what they hold, so that two jobs round alike."""
    _sort_queued()
    _sort_held()


def _sort_held() -> None:
    """V0's, whose batch is in the driver."""
    trainers = sys.modules.get("verl.trainer.ppo.ray_trainer")
    if trainers is None:
        return
    original = trainers.RayPPOTrainer._balance_batch

    def balance(trainer: Any, batch: Any, *arguments: Any, **options: Any) -> Any:
        rows = list(zip(batch.batch["prompts"].tolist(), batch.batch["responses"].tolist(), strict=True))
        batch.reorder(torch.tensor(sorted(range(len(rows)), key=rows.__getitem__)))
        return original(trainer, batch, *arguments, **options)

    trainers.RayPPOTrainer._balance_batch = balance


def _sort_queued() -> None:
    """V1's, whose driver holds keys only."""
    trainers = sys.modules.get("verl.trainer.ppo.v1.trainer_base")
    if trainers is None:
        return
    import transfer_queue

    original = trainers.PPOTrainer._balance_batch

    def balance(trainer: Any, batch: Any, *arguments: Any, **options: Any) -> Any:
        held = transfer_queue.kv_batch_get(
            keys=batch.keys, partition_id=batch.partition_id, select_fields=["prompts", "responses"]
        )
        rows = [
            (prompt.tolist(), response.tolist())
            for prompt, response in zip(held["prompts"].unbind(), held["responses"].unbind(), strict=True)
        ]
        batch.reorder(sorted(range(len(rows)), key=rows.__getitem__))
        return original(trainer, batch, *arguments, **options)

    trainers.PPOTrainer._balance_batch = balance


class CpuReplica(RolloutReplica):
    """One server, however many ranks there are."""

    async def launch_servers(self) -> None:
        if self.replica_rank:
            self.servers = [ray.get_actor(NAME)]
        else:
            made = ray.remote(CpuServer).options(name=NAME, num_cpus=0, max_concurrency=64)
            sort_batches()
            path = str(self.model_config.path)
            stops = [AutoTokenizer.from_pretrained(path).eos_token_id]
            self.servers = [made.remote(path, self.config.response_length, stops)]
        self._server_handle, self._server_address = self.servers[0], f"cpu-{self.replica_rank}:1"
