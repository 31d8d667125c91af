"""Runs Agent-R1's own `RayAgentTrainer.fit` on the toy policy, with conversations in which a tool answers.

``python -m tests.trainers.verl_old.agent_drive '<settings as JSON>'``. The policy's "h" calls the tool. Then the
environment writes the end of turn itself, and an observation. ``covered`` says whether the loss mask leaves that
end of turn out, as it should. A conversation of two calls goes on in a second row of the same trajectory.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from tests.trainers.verl_old import drive, toy
from tests.trainers.verl_old.stand_ins import RANKS, Group

CALL, OBSERVED = "h", "gg"
WIDTH = 12


class Conversations:
    """Draws answers of the policy, and what the environment writes between them."""

    def __init__(self, policy: toy.Policy, tokenizer: Any, draw: torch.Generator, *, covered: bool) -> None:
        self._policy, self._draw, self._covered = policy, draw, covered
        self._call = tokenizer.convert_tokens_to_ids(CALL)
        self._observed = [tokenizer.convert_tokens_to_ids(letter) for letter in OBSERVED]

    def step(self, last: int) -> tuple[list[int], list[int], list[float], bool]:
        """One row: ids, loss mask, the engine's log-probs (0 where it has none), and whether a tool was called."""
        ids: list[int] = []
        mask: list[int] = []
        logp: list[float] = []
        chances = torch.log_softmax(self._policy.logits.detach(), -1)
        while len(ids) < WIDTH:
            drawn = int(torch.multinomial(chances[last].exp(), 1, generator=self._draw))
            ids.append(drawn)
            mask.append(1)
            logp.append(float(chances[last, drawn]))
            last = drawn
            if drawn == self._policy.end:
                return ids, mask, logp, False
            if drawn == self._call:
                written = [self._policy.end, *self._observed]
                ids += written
                mask += [0 if self._covered else 1, 0, 0]
                logp += [0.0, 0.0, 0.0]
                return ids[:WIDTH], mask[:WIDTH], logp[:WIDTH], True
        return ids, mask, logp, False


class AgentGroup(Group):
    """Generates as Agent-R1's flow manager does: a row for each step of a trajectory."""

    settings: dict[str, Any]
    trainer: Any
    rows: list[int]
    _dispatch_info: ClassVar = {"actor": list(range(RANKS)), "ref": list(range(RANKS))}

    def policy_loss(self) -> Any:
        from agent_r1.trainer.ppo import core_algos

        return core_algos.get_policy_loss_fn("vanilla")

    def _query_dispatch_info(self, mesh: str) -> list[int]:
        return self._dispatch_info[mesh]

    def generate_sequences(self, prompts: Any) -> Any:
        from verl import DataProto

        if not prompts.meta_info.get("validate"):
            self.trainer.ran += 1
        talk = Conversations(
            self.workers[0].policy, self._tokenizer, self._draw, covered=bool(self.settings.get("covered"))
        )
        rows: list[tuple[list[int], list[int], list[float], list[int]]] = []
        counts, uids, numbers = [], [], []
        for place, info in enumerate(prompts.non_tensor_batch["extra_info"]):
            prompt = toy.Prompts(self._tokenizer, 64)[int(info["index"])]["raw_prompt_ids"]
            for number in range(2):
                ids, mask, logp, called = talk.step(prompt[-1])
                rows.append((ids, mask, logp, prompt))
                uids.append(f"t{place}")
                numbers.append(number)
                prompt = [prompt[0], ids[-1]]
                if not called:
                    break
            counts.append(number + 1)
        if not prompts.meta_info.get("validate"):
            self.rows.append(len(rows))
        told = self._batch(rows)
        objects = {
            "trajectory_uids": np.array(uids, dtype=object),
            "step_indices": np.array(numbers, dtype=np.int32),
            "__num_turns__": np.array([2] * len(rows), dtype=np.int32),
        }
        return DataProto.from_dict(told, non_tensors=objects, meta_info={"timing": {}, "num_steps": counts})

    def _batch(self, rows: list[Any]) -> dict[str, Tensor]:
        pad = self.workers[0].policy.pad
        ids = torch.tensor([row[0] + [pad] * (WIDTH - len(row[0])) for row in rows])
        seen = torch.tensor([[1] * len(row[0]) + [0] * (WIDTH - len(row[0])) for row in rows])
        mask = torch.tensor([row[1] + [0] * (WIDTH - len(row[1])) for row in rows])
        logp = torch.tensor([row[2] + [0.0] * (WIDTH - len(row[2])) for row in rows])
        prompts = torch.tensor([[pad] * (toy.PROMPT - len(row[3])) + row[3] for row in rows])
        before = torch.tensor([[0] * (toy.PROMPT - len(row[3])) + [1] * len(row[3]) for row in rows])
        whole = torch.cat([before, seen], 1)
        scores = torch.zeros(ids.shape)
        scores[torch.arange(len(rows)), mask.sum(1) - 1] = toy.score(ids, mask, self._tokenizer)
        found = {
            "prompts": prompts,
            "responses": ids,
            "response_mask": mask,
            "input_ids": torch.cat([prompts, ids], 1),
            "attention_mask": whole,
            "position_ids": (whole.cumsum(1) - 1).clamp(min=0),
            "rm_scores": scores,
        }
        return found | ({} if self.settings.get("silent") else {"rollout_log_probs": logp})


def main(settings: dict[str, Any]) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(7)
    import verl

    tokenizer = toy.make_tokenizer()
    config = make_config(settings)
    trainer = make_trainer(config, tokenizer, settings)
    journal = drive.watch_vitals(trainer, settings)
    seen = drive.watch(settings)
    trainer.fit()
    group = trainer.actor_rollout_wg
    told = {
        "version": verl.__version__,
        "steps": trainer.ran,
        "digests": [worker.policy.digest() for worker in group.workers],
        "kl": [drive.coefficient_of(worker) for worker in group.workers],
        "saved": group.saved,
        "rows": group.rows,
        "end": int(tokenizer.eos_token_id),
        "logged": seen,
        "journal": journal() if settings.get("vitals") else {},
    }
    print(json.dumps(told), flush=True)


def make_config(settings: dict[str, Any]) -> Any:
    import agent_r1
    import verl
    from hydra import compose, initialize_config_dir

    folder = Path(str(agent_r1.__path__[0])) / "config"
    told = drive.overrides(settings, (0, 7)) | {
        "data.max_response_length": WIDTH,
        "hydra.searchpath": f"[file://{Path(verl.__file__).parent}/trainer/config]",
    }
    with initialize_config_dir(str(folder), version_base=None):
        return compose("agent_ppo_trainer", overrides=[f"{key}={value}" for key, value in told.items()])


def make_trainer(config: Any, tokenizer: Any, settings: dict[str, Any]) -> Any:
    from agent_r1.trainer.ppo.ray_trainer import RayAgentTrainer
    from verl.trainer.ppo.utils import Role

    class Steps(RayAgentTrainer):  # type: ignore[misc]
        ran = 0

    reward = drive.rewards_of(tokenizer)
    trainer = Steps(
        config=config,
        tokenizer=tokenizer,
        role_worker_mapping={Role.ActorRollout: object, Role.RefPolicy: object},
        resource_pool_manager=SimpleNamespace(get_n_gpus=lambda: 1),
        reward_fn=reward,
        val_reward_fn=reward,
        train_dataset=toy.Prompts(tokenizer, 64, messages_only=True),
        val_dataset=toy.Prompts(tokenizer, 4, messages_only=True),
        collate_fn=toy.collate,
    )
    group = AgentGroup(
        tokenizer, config.actor_rollout_ref, lambda: drive.actor_config(config, (0, 7, 0)), engine=False
    )
    group.settings, group.trainer, group.rows = settings, trainer, []
    trainer.actor_rollout_wg = trainer.ref_policy_wg = trainer.async_rollout_manager = group
    trainer.async_rollout_mode = True
    return trainer


if __name__ == "__main__":
    os.environ.setdefault("RLVITALS_MODE", "disabled")
    main(json.loads(sys.argv[1]))
