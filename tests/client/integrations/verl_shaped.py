"""Objects shaped like verl 0.9's: a V1 trainer and its loop, keys and columns in a queue, workers of two ranks.

Real are the tensors (jagged where verl's are), the order of calls in a step, and what is a method of what.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor

GROUP, PROMPTS, CAP = 2, 3, 6
STOP, PAD = 1, 0
CONFIG: Mapping[str, Any] = {
    "data": {"max_response_length": CAP, "train_batch_size": PROMPTS, "api_key": "sk-aaaaaaaaaaaaaaaaaaaaaaaa"},
    "actor_rollout_ref": {
        "model": {"path": "some/model"},
        "actor": {
            "strategy": "fsdp2",
            "ppo_mini_batch_size": PROMPTS,
            "clip_ratio": 0.2,
            "loss_agg_mode": "token-mean",
            "use_kl_loss": True,
            "kl_loss_coef": 0.01,
            "kl_loss_type": "low_var_kl",
            "policy_loss": {"loss_mode": "vanilla"},
        },
        "rollout": {"n": GROUP, "calculate_log_probs": True, "temperature": 1.0, "name": "vllm"},
    },
    "algorithm": {"adv_estimator": "grpo", "use_kl_in_reward": False},
    "trainer": {
        "project_name": "p",
        "experiment_name": "e",
        "default_local_dir": "/checkpoints",
        "total_training_steps": 3,
        "save_freq": -1,
    },
}


def config(**changes: Any) -> dict[str, Any]:
    """``CONFIG`` with values at dotted paths (``__`` for a dot)."""
    made: dict[str, Any] = copy.deepcopy(dict(CONFIG))
    for path, value in changes.items():
        *folders, last = path.split("__")
        place = made
        for folder in folders:
            place = place.setdefault(folder, {})
        place[last] = value
    return made


class Config(dict[str, Any]):
    """A mapping whose keys are attributes too, as OmegaConf's."""

    def __getattr__(self, name: str) -> Any:
        try:
            value = self[name]
        except KeyError:
            raise AttributeError(name) from None
        return Config(value) if isinstance(value, dict) else value


def jagged(rows: Sequence[Sequence[float]], dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.nested.nested_tensor([torch.tensor(row, dtype=dtype) for row in rows], layout=torch.jagged)


def completions() -> list[list[int]]:
    """Two of six are cut at the limit of six tokens, the others stopped."""
    return [[5, 6, STOP], [5, 5, 5, 5, 5, 5], [7, STOP], [7, 8, 9, STOP], [9, 9, 9, 9, 9, 9], [4, STOP]]


def columns(**changes: Any) -> dict[str, Any]:
    """What TransferQueue holds of one step: six rows, and one more that only fills the batch up."""
    ids = [*completions(), [STOP]]
    lengths = [len(row) for row in ids]
    dice = np.random.default_rng(5)
    old = [(-1 - dice.random(n)).tolist() for n in lengths]
    made: dict[str, Any] = {
        "uid": [*np.repeat(["a", "b", "c"], GROUP).tolist(), "c"],
        "prompts": jagged([[2, 3], [2, 3], [3], [3], [2, 2, 2], [2, 2, 2], [3]], torch.long),
        "responses": jagged(ids, torch.long),
        "response_mask": jagged([[1] * n for n in lengths[:-1]] + [[0]], torch.long),
        "rm_scores": jagged([[0.0] * (n - 1) + [float(k % 2)] for k, n in enumerate(lengths)]),
        "old_log_probs": jagged(old),
        "ref_log_prob": jagged([[x + 0.1 for x in row] for row in old]),
        "rollout_log_probs": jagged([[x - 0.05 for x in row] for row in old]),
        "advantages": jagged([[(-1.0) ** (k + 1)] * n for k, n in enumerate(lengths)]),
        "entropy": jagged([[2.0] * n for n in lengths]),
    }
    return {name: value for name, value in {**made, **changes}.items() if value is not None}


class Queue(ModuleType):
    """``transfer_queue``: gives the columns that are there; cleared when verl has logged its metrics."""

    def __init__(self) -> None:
        super().__init__("transfer_queue")
        self.columns: dict[str, Any] = {}

    def kv_batch_get(self, keys: list[str], partition_id: str, select_fields: list[str]) -> dict[str, Any]:
        assert self.columns, "asked after kv_clear"
        return {name: self.columns[name] for name in select_fields if name in self.columns}


class DataProto:
    """verl's, as far as a function on workers sees it."""

    def __init__(self, batch: Mapping[str, Any], non_tensor_batch: Mapping[str, Any]) -> None:
        self.batch, self.non_tensor_batch = dict(batch), dict(non_tensor_batch)

    @classmethod
    def from_dict(
        cls, tensors: Mapping[str, Any] | None = None, non_tensors: Mapping[str, Any] | None = None
    ) -> DataProto:
        return cls(tensors or {}, non_tensors or {})

    def row(self, number: int) -> DataProto:
        cut = slice(number, number + 1)
        return DataProto(
            {name: value[cut] for name, value in self.batch.items()},
            {name: value[cut] for name, value in self.non_tensor_batch.items()},
        )

    @classmethod
    def concat(cls, parts: Sequence[DataProto]) -> DataProto:
        first = parts[0]
        return cls(
            {name: torch.cat([part.batch[name] for part in parts]) for name in first.batch},
            {name: np.concatenate([p.non_tensor_batch[name] for p in parts]) for name in first.non_tensor_batch},
        )


class Actor:
    """One rank: an engine with an optimizer, and the loss with its own copy of the configuration."""

    def __init__(self, coefficient: float) -> None:
        module = torch.nn.Linear(4, 4)
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda _: 1.0)
        self.engine = SimpleNamespace(module=module, optimizer=optimizer, lr_scheduler=schedule)
        self.config = SimpleNamespace(kl_loss_coef=coefficient, use_kl_loss=True)
        self.loss_fn = partial(ppo_loss, config=self.config)


def ppo_loss(config: Any, model_output: Any, data: Any, dp_group: Any = None) -> tuple[Tensor, dict[str, Any]]:
    """verl's loss, patched on workers."""
    return torch.zeros(()), {"kl_coef": config.kl_loss_coef}


class Workers:
    """``actor_rollout_wg`` of two ranks."""

    world_size = 2

    def __init__(self, coefficient: float = 0.01) -> None:
        self.ranks = [SimpleNamespace(actor=Actor(coefficient)) for _ in range(self.world_size)]
        self.broken = False

    def execute_with_func_generator(self, function: Callable[..., Any], data: DataProto) -> DataProto:
        if self.broken:
            raise RuntimeError("a worker has died")
        return DataProto.concat([function(worker, data.row(n)) for n, worker in enumerate(self.ranks)])


class PPOTrainer:
    """The order of calls of verl 0.9's ``trainer_base.PPOTrainer.fit``; ``metrics_of(step)`` is what it logs."""

    trainer_mode = "sync"

    def __init__(self, queue: Queue, settings: Mapping[str, Any], tokenizer: Any = None) -> None:
        self.config, self.tokenizer, self.queue = Config(settings), tokenizer, queue
        self.actor_rollout_wg = Workers(settings["actor_rollout_ref"]["actor"]["kl_loss_coef"])
        self.global_steps = 0
        self.total_training_steps = int(settings["trainer"]["total_training_steps"])
        self.metrics_of: Callable[[int], dict[str, Any]] = self.usual
        self.columns_of: Callable[[int], dict[str, Any]] = lambda step: columns()
        self.at_step: Callable[[int], None] = lambda step: None
        self.ran: list[int] = []
        self.synced: list[int] = []
        self.saved: list[int] = []

    def usual(self, step: int) -> dict[str, Any]:
        actor = self.actor_rollout_wg.ranks[0].actor.config
        logged = {"actor/kl_coef": actor.kl_loss_coef} if self.config.actor_rollout_ref.actor.use_kl_loss else {}
        return {
            **logged,
            "actor/grad_norm": np.float64(1.5),
            "actor/pg_loss": 0.25,
            "actor/lr": np.float32(0.01),
            "timing_s/gen": 2.0,
            "timing_s/update_actor": 1.0,
        }

    def fit(self, agent_loop_manager: Any = None) -> None:
        self.global_steps = 1
        while self.global_steps <= self.total_training_steps:
            metrics: dict[str, Any] = {}
            batch = self.step(metrics, {})
            self.on_step_end()
            step = self.global_steps
            self._compute_metrics(batch, metrics, {}, global_steps=step, epoch=0)
            self.queue.columns = {}
            self.ran.append(step)
            self.at_step(step)
            self.global_steps += 1

    def step(self, metrics: dict[str, Any], timing_raw: dict[str, Any]) -> Any:
        self.queue.columns = self.columns_of(self.global_steps)
        metrics.update(self.metrics_of(self.global_steps))
        rows = len(self.queue.columns.get("uid", ()))
        tags = [{"is_padding": number == len(completions())} for number in range(rows)]
        return SimpleNamespace(keys=[str(n) for n in range(rows)], partition_id="train", tags=tags)

    def _compute_metrics(
        self, batch: Any, metrics: dict[str, Any], timing_raw: Any, global_steps: int, epoch: int
    ) -> None:
        # wrong in verl: the longest of the batch counts as cut
        metrics |= {"training/global_step": global_steps, "response_length/clip_ratio": 0.5}

    def on_step_end(self) -> None:
        raise NotImplementedError

    def _save_checkpoint(self) -> None:
        self.saved.append(self.global_steps)


class PPOTrainerSync(PPOTrainer):
    """A mode's own class, with its own end of a step: weights go to the rollout engine."""

    def on_step_end(self) -> None:
        self.synced.append(self.global_steps)
