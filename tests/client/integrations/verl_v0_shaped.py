"""Fakes of the shape that verl's V0 trainers have: a logger, a loop with a local batch, a DataProto."""

from __future__ import annotations

import math
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rlvitals.integrations.verl import v0
from rlvitals.integrations.verl.session import session_of
from tests.client.integrations import tiny

END, TOOL = 7, 6
NAN, INF = math.nan, math.inf


def tapped() -> type:
    """A logger like verl's, tapped."""

    class Tracking:
        def __init__(self) -> None:
            self.logged: list[tuple[int, dict[str, Any]]] = []

        def log(self, data: dict[str, Any], step: int, backend: object = None) -> None:
            self.logged.append((step, data))

    module = ModuleType("verl.utils.tracking")
    module.Tracking = Tracking  # type: ignore[attr-defined]
    v0.patch_tracking(module)
    return Tracking


class Trainer:
    """The loop of V0: a batch in a local name, a step logged, one more counted."""

    def __init__(self, tracking: type, batches: list[Any], **settings: Any) -> None:
        self.global_steps, self.total_training_steps = 0, len(batches)
        self.tokenizer = None
        self.actor_rollout_wg = SimpleNamespace()
        self.kl_ctrl_in_reward = SimpleNamespace(value=0.01)
        self.config = Tree(
            algorithm=Tree(use_kl_in_reward=True, kl_penalty="kl", kl_ctrl=Tree(kl_coef=0.01)),
            trainer=Tree(project_name="p", experiment_name="e", save_freq=-1, default_local_dir="/ck"),
            data=Tree(max_response_length=4),
            actor_rollout_ref=Tree(
                rollout=Tree(n=2, multi_turn=Tree(enable=False)), actor=Tree(use_kl_loss=False)
            ),
            **settings,
        )
        self.saved: list[int] = []
        self._tracking, self._batches = tracking, batches

    def fit(self, before: Any = None, validated: dict[str, float] | None = None) -> Any:
        logger = self._tracking()
        if validated is not None:
            logger.log(data=validated, step=0)
        for batch in self._batches:
            self.global_steps += 1
            if before is not None:
                before(self)
            metrics = {"training/global_step": self.global_steps, "actor/grad_norm": batch.norm}
            logger.log(data=metrics, step=self.global_steps)
        return logger

    def _save_checkpoint(self) -> None:
        self.saved.append(self.global_steps)


class Tree(dict[str, Any]):
    """A configuration that is read by keys and by attributes, as OmegaConf's."""

    def __getattr__(self, name: str) -> Any:
        return self[name] if name in self else super().__getattribute__(name)

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value


def proto(norm: float = 1.0, **more: Any) -> Any:
    """A DataProto's shape: two groups of two, four tokens each, the last one of the padding."""
    ids = torch.tensor([[1, 2, END, 0], [1, 3, 3, 3], [2, 2, END, 0], [3, END, 0, 0]])
    mask = torch.tensor([[1, 1, 1, 0], [1, 1, 1, 1], [1, 1, 1, 0], [1, 1, 0, 0]])
    tensors = {
        "prompts": torch.tensor([[0, 5]] * 4),
        "responses": ids,
        "attention_mask": torch.cat([torch.tensor([[0, 1]] * 4), mask], 1),
        "response_mask": mask,
        "old_log_probs": torch.full((4, 4), -1.0),
        "token_level_scores": torch.tensor([[0.0] * 3 + [reward] for reward in (1.0, 0.0, 0.0, 0.0)]),
        "advantages": torch.tensor([[1.0], [-1.0], [0.0], [0.0]]).expand(4, 4),
        **{name: value for name, value in more.items() if isinstance(value, Tensor)},
    }
    others = {"uid": np.array(["a", "a", "b", "b"], dtype=object)}
    others |= {name: value for name, value in more.items() if not isinstance(value, Tensor)}
    return SimpleNamespace(batch=tensors, non_tensor_batch=others, norm=norm)


def steps(trainer: Trainer) -> list[Any]:
    return tiny.steps(session_of(trainer).reporter)
