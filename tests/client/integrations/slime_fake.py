"""As much of slime as its hooks see: modules of the same names, a loss and a step with the same signatures."""

from __future__ import annotations

import sys
import types
from argparse import Namespace
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import pytest
import torch
from torch import Tensor

OURS = "rlvitals.integrations.slime"
LOSS, MODEL = "slime.backends.megatron_utils.loss", "slime.backends.megatron_utils.model"


class Status(Enum):
    COMPLETED = "completed"
    TRUNCATED = "truncated"


@dataclass
class Sample:
    index: int = 0
    group_index: int | None = None
    prompt: str = "say:"
    tokens: list[int] = field(default_factory=list)
    response: str = ""
    response_length: int = 0
    reward: Any = None
    loss_mask: list[int] | None = None
    remove_sample: bool = False
    status: Status = Status.COMPLETED


def arguments(policy: str = "", **changes: Any) -> Namespace:
    told: dict[str, Any] = {
        "hf_checkpoint": policy,
        "rollout_batch_size": 2,
        "n_samples_per_prompt": 2,
        "global_batch_size": 2,
        "rollout_max_response_len": 4,
        "advantage_estimator": "grpo",
        "loss_type": "policy_loss",
        "use_kl_loss": True,
        "kl_loss_coef": 0.01,
        "kl_loss_type": "low_var_kl",
        "kl_coef": 0.0,
        "eps_clip": 0.2,
        "eps_clip_high": 0.28,
        "save": None,
        "wandb_key": "a-secret",
        "custom_rollout_log_function_path": f"{OURS}.log_rollout",
        "custom_megatron_before_train_step_hook_path": f"{OURS}.before_train_step",
    }
    return Namespace(**told | changes)


def samples() -> list[Sample]:
    """Two groups of two: one of equal rewards, and a sample that was cut."""
    rows = [([9, 1, 2, 3, 4], 0, 1.0), ([9, 1, 2], 0, 0.0), ([9, 5], 1, 0.0), ([9, 6], 1, 0.0)]
    found = [
        Sample(index=n, group_index=group, tokens=tokens, response_length=len(tokens) - 1, reward=reward)
        for n, (tokens, group, reward) in enumerate(rows)
    ]
    found[0].status = Status.TRUNCATED
    return found


def micro_batch(*, old: float | None = -1.0, ref: float = -1.2, rollout: float = -1.1) -> dict[str, Any]:
    """Two samples with responses of 3 and 2 tokens."""
    sizes = [3, 2]

    def of(value: float) -> list[Tensor]:
        return [torch.full((size,), value) for size in sizes]

    batch: dict[str, Any] = {
        "unconcat_tokens": [torch.tensor([9, 1, 2, 3]), torch.tensor([9, 5, 6])],
        "tokens": [torch.tensor([9, 1, 2, 3]), torch.tensor([9, 5, 6])],
        "total_lengths": [4, 3],
        "response_lengths": sizes,
        "loss_masks": [torch.ones(3), torch.tensor([1.0, 0.0])],
        "rollout_mask_sums": [torch.tensor(3.0), torch.tensor(1.0)],
        "ref_log_probs": of(ref),
        "rollout_log_probs": of(rollout),
        "advantages": [torch.full((3,), 1.0), torch.full((2,), -1.0)],
    }
    return batch if old is None else batch | {"log_probs": of(old)}


class Optimizer:
    def __init__(self) -> None:
        self.param_groups = [{"lr": 1e-3}]


class Model:
    role = "actor"


def install(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Puts the modules in place; gives the one with ``train_one_step``."""
    for name in ("slime", "slime.backends", "slime.backends.megatron_utils", LOSS, MODEL):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    loss, model = sys.modules[LOSS], sys.modules[MODEL]

    def get_log_probs_and_entropy(logits: Tensor, **told: Any) -> Any:
        sizes = told["response_lengths"]
        return torch.zeros(0), {
            "log_probs": list(logits.split(sizes)),
            "entropy": [torch.full((size,), 0.5) for size in sizes],
        }

    def policy_loss_function(args: Namespace, batch: dict[str, Any], logits: Tensor, mean: Any) -> Any:
        _, seen = loss.get_log_probs_and_entropy(logits, response_lengths=batch["response_lengths"])  # type: ignore[attr-defined]
        terms = [
            -(lp * a * m).sum()
            for lp, a, m in zip(seen["log_probs"], batch["advantages"], batch["loss_masks"], strict=True)
        ]
        total = sum(terms[1:], terms[0])
        return total, {"loss": total.detach(), "pg_loss": total.detach()}

    def train_one_step(
        args: Namespace, rollout_id: int, step_id: int, data: Any, model: Any, optimizer: Any, scheduler: Any
    ) -> Any:
        from rlvitals.integrations.slime import before_train_step

        before_train_step(args, rollout_id, step_id, model, optimizer, scheduler)
        losses: dict[str, Any] = {}
        for batch, logits in data:
            value, losses = loss.policy_loss_function(args, batch, logits, None)  # type: ignore[attr-defined]
            value.backward()
        return losses, 0.7

    loss.get_log_probs_and_entropy = get_log_probs_and_entropy  # type: ignore[attr-defined]
    loss.policy_loss_function = policy_loss_function  # type: ignore[attr-defined]
    model.train_one_step = train_one_step  # type: ignore[attr-defined]
    return model
