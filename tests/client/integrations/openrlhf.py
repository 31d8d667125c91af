"""Objects of OpenRLHF's shapes that train for real: a table of logits on two ranks, a controller, no Ray."""

from __future__ import annotations

import hashlib
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

ROWS, GROUP, PROMPT, ANSWER, VOCABULARY = 8, 4, 2, 3, 6
DOTTED: dict[str, Any] = {
    "algo.kl.init_coef": 0.1,
    "algo.kl.use_loss": True,
    "algo.kl.estimator": "k3",
    "algo.kl.target": None,
    "algo.advantage.estimator": "group_norm",
    "algo.advantage.is_correction_level": "off",
    "rollout.n_samples_per_prompt": GROUP,
    "rollout.batch_size": ROWS // GROUP,
    "rollout.max_new_tokens": ANSWER,
    "train.batch_size": ROWS,
    "train.max_epochs": 1,
    "actor.eps_clip": 0.2,
    "actor.eps_clip_low_high": (0.2, 0.3),
    "actor.model_name_or_path": "",
    "actor.loss_agg_mode": "token-mean",
    "logger.logging_steps": 1,
    "logger.wandb.key": "0123456789abcdef",
    "logger.wandb.run_name": "ppo",
    "ckpt.save_steps": float("inf"),
    "ckpt.path": "ckpt",
    "ckpt.load_enable": False,
    "ckpt.disable_ds": False,
    "ckpt.save_hf": False,
}


def namespace(settings: dict[str, Any]) -> Any:
    """Dotted names → nested namespaces, as OpenRLHF makes them."""
    root = SimpleNamespace()
    for path, value in settings.items():
        *heads, key = path.split(".")
        owner = root
        for head in heads:
            if not hasattr(owner, head):
                setattr(owner, head, SimpleNamespace())
            owner = getattr(owner, head)
        setattr(owner, key, value)
    return root


class Handle:
    """An actor handle whose calls are answered at once."""

    def __init__(self, actor: Any) -> None:
        self.actor = actor
        self.__ray_call__ = SimpleNamespace(remote=lambda call, *told: call(actor, *told))


def put_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    """What we use of Ray: ``get``, and a key-value store of the job."""
    ray, kv, store = ModuleType("ray"), ModuleType("ray.experimental.internal_kv"), {}
    ray.get = lambda answers, timeout=None: answers  # type: ignore[attr-defined]
    ray.get_runtime_context = lambda: SimpleNamespace(get_job_id=lambda: "01")  # type: ignore[attr-defined]
    kv._internal_kv_put = store.__setitem__  # type: ignore[attr-defined]
    kv._internal_kv_get = store.get  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.setitem(sys.modules, "ray.experimental", ModuleType("ray.experimental"))
    monkeypatch.setitem(sys.modules, "ray.experimental.internal_kv", kv)


class PolicyLoss(torch.nn.Module):
    def forward(
        self, logp: Tensor, old: Tensor, advantages: Tensor, action_mask: Any = None, **info: Any
    ) -> tuple[Any, ...]:
        ratio = (logp - old).exp()
        loss = -torch.min(ratio * advantages, ratio.clamp(0.8, 1.3) * advantages) * action_mask
        return (
            loss.sum() / info["batch_num_tokens"] * info["dp_size"],
            ratio.mean(),
            (old - logp).mean(),
            None,
            None,
        )


class ActorTrainer:
    """One rank's ``ActorPPOTrainer``: one micro-batch of its half of the rows."""

    def __init__(self, args: Any, rank: int) -> None:
        self.args, self.rank = args, rank
        self.table = torch.nn.Parameter(torch.linspace(-1, 1, VOCABULARY))
        self.optimizer = torch.optim.SGD([self.table], lr=0.5)
        self.actor_loss_fn = PolicyLoss()
        self.strategy = SimpleNamespace(accumulated_gradient=1, backward=lambda loss, *_: loss.backward())
        self.coefficients: list[float] = []
        self.kl: Tensor | None = None

    def training_step(self, experience: Any, kl_ctl: float, step: int, info: Any = None) -> dict[str, Any]:
        logp = logprobs(self.table, experience.sequences)
        loss, *_ = self.actor_loss_fn(
            logp, experience.action_log_probs, experience.advantages, action_mask=experience.action_mask, **info
        )
        if self.args.algo.kl.use_loss:
            ratio = logp - experience.base_action_log_probs
            self.kl = ((-ratio).exp() - 1 + ratio) * experience.action_mask
            loss = loss + kl_ctl * self.kl.sum() / info["batch_num_tokens"] * info["dp_size"]
        self.optimizer.zero_grad()
        self.strategy.backward(loss, None, None)
        self.optimizer.step()
        self.coefficients.append(kl_ctl)
        return {"policy_loss": float(loss.detach())}


def logprobs(table: Tensor, sequences: Tensor) -> Tensor:
    return table.log_softmax(0)[sequences[:, 1:]]


class ExperienceMaker:
    def compute_advantages_and_returns(self, experiences: list[Any]) -> list[Any]:
        for experience in experiences:
            rewards = experience.rewards.reshape(-1, GROUP)
            normal = (rewards - rewards.mean(-1, keepdim=True)) / (rewards.std(-1, keepdim=True) + 1e-9)
            experience.advantages = normal.reshape(-1, 1) * experience.action_mask
            experience.returns = experience.advantages.clone()
            experience.kl = None
        return experiences


class Trainer:
    """A ``PPOTrainer`` of two ranks; ``change(experiences)`` may spoil a rollout before it is trained on."""

    def __init__(self, *, steps: int = 3, change: Any = None, **settings: Any) -> None:
        self.args = namespace({**DOTTED, **{name.replace("__", "."): value for name, value in settings.items()}})
        self.steps, self.change = steps, change
        self.tokenizer, self.critic_model_group = None, None
        self.kl_ctl = SimpleNamespace(value=self.args.algo.kl.init_coef)
        self.experience_maker = ExperienceMaker()
        self.samples_generator = SimpleNamespace(generate_samples=self._generate)
        self.ranks = [
            SimpleNamespace(_rank=rank, trainer=ActorTrainer(self.args, rank), checkpoint_states=dict[str, Any]())
            for rank in range(2)
        ]
        for rank in self.ranks:
            rank.actor_optim, rank.actor_scheduler = rank.trainer.optimizer, SimpleNamespace(base_lrs=[0.5])
        self.actor_model_group = SimpleNamespace(
            _actor_handlers=[Handle(rank) for rank in self.ranks],
            async_run_method=lambda method_name: [rank.checkpoint_states for rank in self.ranks],
        )
        self.saved: dict[int, Any] = {}
        self.logged: list[int] = []
        self.ran: list[int] = []
        self.logs: dict[str, Any] = {}
        self.at_step: Any = lambda step: None
        self.evaluated_after = 0
        self._dice = torch.Generator().manual_seed(4)
        self._made = 0

    def fit(self, global_step: int = 0) -> str:
        while True:
            samples, _, _, exhausted = self.samples_generator.generate_samples()
            if not samples and exhausted:
                return "done"
            experiences = self.experience_maker.compute_advantages_and_returns(samples)
            for rank in self.ranks:
                half = slice(rank._rank * ROWS // 2, (rank._rank + 1) * ROWS // 2)
                info = {"batch_num_tokens": samples[0].action_mask.sum().float(), "dp_size": 2}
                rank.trainer.training_step(part(experiences[0], half), self.kl_ctl.value, 0, info)
            global_step += 1
            self.ran.append(global_step)
            logs = {"policy_loss": 0.5, "actor_lr": 0.5, "actor_grad_norm": 0.25, "response_clip_ratio": 0.0}
            self.at_step(global_step)
            states = {"global_step": global_step}
            self.save_logs_and_checkpoints(global_step, {**logs, **self.logs}, states)
            if global_step == self.evaluated_after:
                self.save_best_checkpoint({"eval_sums_pass1": 0.25}, global_step)

    def save_best_checkpoint(self, eval_metrics: Any, global_step: int, client_states: Any = None) -> None:
        """OpenRLHF calls it after each evaluation."""

    def save_logs_and_checkpoints(
        self, global_step: int, logs_dict: Any = None, client_states: Any = None
    ) -> None:
        if global_step % self.args.logger.logging_steps == 0:
            self.logged.append(global_step)
        if global_step % self.args.ckpt.save_steps == 0:
            self.saved[global_step] = dict(client_states)

    def weights(self) -> str:
        return hashlib.sha256(b"".join(r.trainer.table.detach().numpy().tobytes() for r in self.ranks)).hexdigest()

    def _generate(self, **_: Any) -> Any:
        if self._made == self.steps:
            return [], None, 0, True
        self._made += 1
        made = experience(self.ranks[0].trainer.table.detach(), self._dice)
        if self.change is not None:
            self.change(made)
        return [made], None, 2, False


def experience(table: Tensor, dice: torch.Generator) -> Any:
    sequences = torch.randint(1, VOCABULARY, (ROWS, PROMPT + ANSWER), generator=dice)
    mask = torch.zeros(ROWS, PROMPT + ANSWER - 1, dtype=torch.int64)
    mask[:, PROMPT - 1 :] = 1
    old = logprobs(table, sequences) + 0.05 * torch.rand(mask.shape, generator=dice)
    reference = torch.full((VOCABULARY,), 0.0).log_softmax(0)[sequences[:, 1:]]
    return SimpleNamespace(
        sequences=sequences,
        action_mask=mask,
        action_log_probs=old,
        base_action_log_probs=reference,
        rollout_log_probs=None,
        values=None,
        returns=None,
        advantages=None,
        kl=torch.zeros(mask.shape),
        rewards=torch.rand(ROWS, generator=dice),
        truncated=torch.tensor([True] + [False] * (ROWS - 1)),
        index=list(range(ROWS)),
        prompts=[f"prompt {row // GROUP}" for row in range(ROWS)],
        info={},
    )


def part(whole: Any, rows: slice) -> Any:
    cut = {name: value[rows] if isinstance(value, Tensor) else value for name, value in vars(whole).items()}
    return SimpleNamespace(**cut)
