"""What stands in for workers on GPUs: two ranks in this process, which train the table with verl's own losses."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tests.trainers.verl_old import toy

RANKS, EPOCHS = 2, 2


class Worker:
    """One rank: the attributes of verl's own worker that a command reaches for."""

    def __init__(self, rank: int, tokenizer: Any, config: Any, actor_config: Any, *, engine: bool) -> None:
        self.rank, self.config = rank, config
        self.policy = toy.Policy(tokenizer)
        self.actor = SimpleNamespace(config=actor_config)
        self.actor_optimizer, self.actor_lr_scheduler = self.policy.optimizer, self.policy.scheduler
        if engine:
            parts = SimpleNamespace(optimizer=self.policy.optimizer, lr_scheduler=self.policy.scheduler)
            self.actor = SimpleNamespace(engine=parts, loss_fn=None)


class Group:
    """A worker group with verl's own way of cutting a batch for ranks and putting answers together."""

    def __init__(self, tokenizer: Any, config: Any, actor_config: Callable[[], Any], *, engine: bool) -> None:
        self.world_size, self.engine, self._tokenizer = RANKS, engine, tokenizer
        self.workers = [
            Worker(rank, tokenizer, config, None if engine else actor_config(), engine=engine)
            for rank in range(RANKS)
        ]
        self.reference = copy.deepcopy(self.workers[0].policy)
        self._draw = torch.Generator().manual_seed(11)
        self.saved: list[int] = []
        self.cut: list[float] = []
        self.group = int(config.rollout.n)

    # -- generation --------------------------------------------------------------------------------

    def generate_sequences(self, prompts: Any) -> Any:
        from verl import DataProto

        columns, others, size = prompts.batch, prompts.non_tensor_batch, len(prompts)
        if columns is not None and "input_ids" in columns:
            ids, mask = columns["input_ids"], columns["attention_mask"]
        else:
            rows = [toy.Prompts(self._tokenizer, 64)[int(info["index"])] for info in others["extra_info"]]
            ids, mask = (torch.stack([row[name] for row in rows]) for name in ("input_ids", "attention_mask"))
        if self.repeats and not prompts.meta_info.get("validate"):
            ids, mask = (part.repeat_interleave(self.group, 0) for part in (ids, mask))
            size *= self.group
        answers, chosen, logp = self.workers[0].policy.sample(ids[:, -1], self._draw)
        if not prompts.meta_info.get("validate"):
            self.cut.append(float(((answers == self.reference.end).sum(1) == 0).float().mean()))
        whole = torch.cat([mask, chosen], 1)
        scores = torch.zeros(answers.shape)
        scores[torch.arange(size), chosen.sum(1) - 1] = toy.score(answers, chosen, self._tokenizer)
        tensors = {
            "prompts": ids,
            "responses": answers,
            "input_ids": torch.cat([ids, answers], 1),
            "attention_mask": whole,
            "position_ids": (whole.cumsum(1) - 1).clamp(min=0),
            "rollout_log_probs": logp,
            **self.scores(scores),
            **self.more(answers, chosen),
        }
        made = DataProto.from_dict(tensors, non_tensors=self.objects(size), meta_info={"timing": {}})
        return made

    poison = 0
    """The step whose gradient is NaN."""
    repeats = False
    """Whether a release leaves it to the engine to draw several answers to a prompt."""

    def scores(self, scores: Tensor) -> dict[str, Tensor]:
        return {}

    def more(self, answers: Tensor, chosen: Tensor) -> dict[str, Tensor]:
        return {}

    def objects(self, size: int) -> dict[str, Any]:
        column = np.empty(size, dtype=object)
        column[:] = [{} for _ in range(size)]
        return {"multi_modal_inputs": column}

    # -- log-probs ---------------------------------------------------------------------------------

    def compute_log_prob(self, batch: Any) -> Any:
        logp, entropy = self._logp(self.workers[0].policy, batch)
        return self._answer(batch, {"old_log_probs": logp, "entropys": entropy}, ("log_probs", "entropy"))

    def compute_ref_log_prob(self, batch: Any) -> Any:
        logp, _ = self._logp(self.reference, batch)
        return self._answer(batch, {"ref_log_prob": logp}, ("log_probs",))

    def _logp(self, policy: toy.Policy, batch: Any) -> tuple[Tensor, Tensor]:
        columns = batch if self.engine else batch.batch
        with torch.no_grad():
            return policy.logp(columns["prompts"][:, -1], columns["responses"])

    def _answer(self, batch: Any, named: dict[str, Tensor], names: tuple[str, ...]) -> Any:
        """A DataProto of padded columns; engine workers answer with jagged ones of whole sequences."""
        from verl import DataProto

        if not self.engine:
            return DataProto.from_dict(named)
        from verl.utils import tensordict_utils as tu

        jagged = {name: whole_sequences(batch, value) for name, value in zip(names, named.values(), strict=True)}
        return tu.get_tensordict(jagged, non_tensor_dict={"metrics": {"mfu": 0.0}})

    def policy_loss(self) -> Any:
        """As this release's own actor finds it; None where it calls one by name."""
        from verl.trainer.ppo import core_algos

        known = hasattr(core_algos, "compute_policy_loss_vanilla")
        return core_algos.get_policy_loss_fn("vanilla") if known else None

    # -- the update --------------------------------------------------------------------------------

    def update_actor(self, batch: Any) -> Any:
        from verl import DataProto

        if self.engine:
            return self._update_engine(batch)
        told: dict[str, list[float]] = {}
        shards, norms = batch.chunk(RANKS), []
        for _ in range(EPOCHS):
            for worker, shard in zip(self.workers, shards, strict=True):
                worker.actor_optimizer.zero_grad()
                loss, metrics = legacy_loss(worker, shard.batch, self.policy_loss())
                loss.backward()
                for name, value in metrics.items():
                    told.setdefault(name, []).append(value)
            norms.append(self._step())
        told |= {"actor/grad_norm": norms, "actor/lr": [self.workers[0].actor_lr_scheduler.get_last_lr()[0]]}
        return DataProto(meta_info={"metrics": told})

    def _update_engine(self, batch: Any) -> Any:
        from verl.utils import tensordict_utils as tu

        tu.assign_non_tensor(batch, dp_size=1, batch_num_tokens=None)
        told: dict[str, list[float]] = {"mfu": [0.0], "grad_norm": []}
        for _ in range(EPOCHS):
            for worker in self.workers:
                worker.actor_optimizer.zero_grad()
                logp, _ = worker.policy.logp(batch["prompts"][:, -1], batch["responses"])
                output = {"log_probs": whole_sequences(batch, logp)}
                loss, metrics = worker.actor.loss_fn(model_output=output, data=batch)
                loss.backward()
                for name, value in metrics.items():
                    plain = value.aggregate() if hasattr(value, "aggregate") else value
                    told.setdefault(name.removeprefix("actor/"), []).append(float(plain))
            told["grad_norm"].append(self._step())
        told["lr"] = [self.workers[0].actor_lr_scheduler.get_last_lr()[0]]
        return tu.get_tensordict({}, non_tensor_dict={"metrics": told})

    def _step(self) -> float:
        """Averages the ranks' gradients, clips, steps. The norm before clipping."""
        if self.poison and len(self.cut) == self.poison:
            # verl since 0.4 skips an update whose gradient is not finite, and goes on
            return math.nan
        mean = torch.stack([worker.policy.logits.grad for worker in self.workers]).mean(0)  # type: ignore[misc]
        norm = 0.0
        for worker in self.workers:
            worker.policy.logits.grad = mean.clone()
            norm = float(torch.nn.utils.clip_grad_norm_([worker.policy.logits], 1.0))
            worker.actor_optimizer.step()
            worker.actor_lr_scheduler.step()
        return norm

    # -- what verl's groups have besides -----------------------------------------------------------

    def execute_with_func_generator(self, function: Any, data: Any) -> Any:
        from verl import DataProto

        shards = data.chunk(RANKS)
        return DataProto.concat(
            [function(worker, shard) for worker, shard in zip(self.workers, shards, strict=True)]
        )

    def set_loss_fn(self, loss_fn: Any) -> None:
        for worker in self.workers:
            worker.actor.loss_fn = loss_fn

    def save_checkpoint(self, folder: str, remote: str | None, step: int, **_: Any) -> None:
        self.saved.append(step)

    def load_checkpoint(self, *_: Any, **__: Any) -> None: ...

    def start_profile(self, **_: Any) -> None: ...

    def stop_profile(self, **_: Any) -> None: ...


def legacy_loss(worker: Worker, batch: Any, policy_loss: Any) -> tuple[Tensor, dict[str, float]]:
    """The loss of verl's own actors up to 0.7: clipped, with the KL term by the coefficient in force."""
    from verl.trainer.ppo import core_algos

    config = worker.actor.config
    logp, _ = worker.policy.logp(batch["prompts"][:, -1], batch["responses"])
    mask, told = loss_mask(batch), {}
    model_inputs = batch  # noqa: F841  the name that verl's actors have for it
    if policy_loss is not None:
        found = policy_loss(
            old_log_prob=batch["old_log_probs"],
            log_prob=logp,
            advantages=batch["advantages"],
            response_mask=mask,
            loss_agg_mode="token-mean",
            config=config,
        )
    else:
        found = core_algos.compute_policy_loss(
            batch["old_log_probs"], logp, batch["advantages"], mask, cliprange=0.2, loss_agg_mode="token-mean"
        )
    loss, *others = found
    if isinstance(others[0], dict):
        told |= {name: float(value) for name, value in others[0].items()}
    else:
        told |= {"actor/pg_clipfrac": float(others[0]), "actor/ppo_kl": float(others[1])}
    told |= {"actor/pg_loss": float(loss)}
    if config.use_kl_loss:
        distance = core_algos.kl_penalty(logp, batch["ref_log_prob"], config.kl_loss_type)
        kl = core_algos.agg_loss(loss_mat=distance, loss_mask=mask, loss_agg_mode="token-mean")
        loss = loss + kl * config.kl_loss_coef
        told |= {"actor/kl_loss": float(kl), "actor/kl_coef": float(config.kl_loss_coef)}
    return loss, told


def loss_mask(batch: Any) -> Tensor:
    size = batch["responses"].shape[1]
    return batch["loss_mask"][:, -size:] if batch.get("loss_mask", None) is not None else batch["response_mask"]


def whole_sequences(batch: Any, responses: Tensor) -> Tensor:
    """(B, R) padded → jagged over prompt and answer, one place to the left, as engine workers give them."""
    mask, width = batch["attention_mask"], batch["prompts"].shape[1]
    rows = []
    for row, value in zip(mask, responses, strict=True):
        before, length = int(row[:width].sum()), int(row[width:].sum())
        whole = value.new_zeros(before + length)
        rows.append(torch.cat([whole[: before - 1], value[:length], whole[:1]]))
    return torch.nested.as_nested_tensor(rows, layout=torch.jagged)
