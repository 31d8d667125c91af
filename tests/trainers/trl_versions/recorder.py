"""What a trainer really computed, recorded before `rlvitals.attach` and without it: the figures by hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

METHODS = ("_get_per_token_logps_and_entropies", "_get_per_token_logps")


class Recorder:
    """Wraps the trainer's own methods; keeps by optimizer step what each micro-batch and generation held."""

    def __init__(self, trainer: Any) -> None:
        self.trainer = trainer
        self.batches: dict[int, list[dict[str, Tensor]]] = {}
        self.scored: dict[int, list[Tensor]] = {}
        self.rewards: dict[int, list[float]] = {}
        self._logp: Tensor | None = None
        name = next(name for name in METHODS if hasattr(trainer, name))
        self._wrap(name, self._logprobs)
        self._wrap("compute_loss", self._loss)
        trainer.reward_funcs[0] = self._rewarded(trainer.reward_funcs[0])

    def figures(self, step: int) -> dict[str, float]:
        """By the names of the registry, of one step; only what the recorded tensors tell."""
        batches = self.batches[step]
        mask = torch.cat([batch["completion_mask"].reshape(-1) for batch in batches]).bool()
        found = {"policy.loss": sum(float(batch["loss"]) for batch in batches)}
        found |= {"policy.loss_tokens": float(mask.sum())}
        logp = _joined(batches, "logp")[mask].double()
        if all("old_per_token_logps" in batch for batch in batches):
            ratio = (logp - _joined(batches, "old_per_token_logps")[mask].double()).exp()
            found |= {"ratio.max": float(ratio.max()), "ratio.min": float(ratio.min())}
        if all("ref_per_token_logps" in batch for batch in batches):
            found |= _distances(logp, _joined(batches, "ref_per_token_logps")[mask].double())
        if step in self.rewards:
            found |= _of_generation(batches, self.rewards[step], int(self.trainer.num_generations))
        return found

    def reward_kl(self, step: int) -> dict[str, float]:
        """Of a trainer whose KL is in the reward, at a step that generates; without micro-batches."""
        (batch,), (logp, ref) = self.batches[step], self.scored[step]
        mask = batch["completion_mask"].bool()
        found = _distances(logp[mask].double(), ref[mask].double())
        del found["kl.k3_max"]
        group = int(self.trainer.num_generations)
        rewards = torch.tensor(self.rewards[step], dtype=torch.float64).view(-1, group)
        penalty = (self.trainer.beta * ((logp - ref) * mask).double().sum(1)).view(-1, group)
        whole, part = _left_out(rewards - penalty), -_left_out(penalty)
        tokens = mask.double().sum(1)
        kl, policy = (tokens * part**2).sum().sqrt(), (tokens * (whole - part) ** 2).sum().sqrt()
        return {**found, "kl.pull_ratio": float(kl / policy)}

    # -- inside ------------------------------------------------------------------------------------

    def _step(self) -> int:
        return int(self.trainer.state.global_step) + 1

    def _wrap(self, name: str, after: Callable[..., None]) -> None:
        original = getattr(self.trainer, name)

        def recorded(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            if self.trainer.model.training:
                after(result, *args)
            return result

        setattr(self.trainer, name, recorded)

    def _logprobs(self, result: Any, *_: Any) -> None:
        logp = (result[0] if isinstance(result, tuple) else result).detach()
        if torch.is_grad_enabled():
            self._logp = logp
        else:
            self.scored.setdefault(self._step(), []).append(logp)

    def _loss(self, loss: Tensor, model: Any, inputs: dict[str, Any], *_: Any) -> None:
        assert self._logp is not None
        kept = {name: value for name, value in inputs.items() if isinstance(value, Tensor)}
        self.batches.setdefault(self._step(), []).append({**kept, "logp": self._logp, "loss": loss.detach()})

    def _rewarded(self, reward: Callable[..., list[float]]) -> Callable[..., list[float]]:
        def recorded(**given: Any) -> list[float]:
            found = reward(**given)
            if self.trainer.model.training:
                self.rewards.setdefault(self._step(), []).extend(found)
            return found

        return recorded


def _joined(batches: list[dict[str, Tensor]], name: str) -> Tensor:
    return torch.cat([batch[name].reshape(-1) for batch in batches])


def _distances(logp: Tensor, ref: Tensor) -> dict[str, float]:
    away = ref - logp
    k3 = away.exp() - 1 - away
    return {
        "kl.k1": float(-away.mean()),
        "kl.k3": float(k3.mean()),
        "kl.k3_max": float(k3.max()),
        "ratio.reference_max": float((-away).exp().max()),
    }


def _of_generation(batches: list[dict[str, Tensor]], rewards: list[float], group: int) -> dict[str, float]:
    rows = [
        ids[: int(length)]
        for batch in batches
        for ids, length in zip(batch["completion_ids"].tolist(), batch["completion_mask"].sum(1), strict=True)
    ]
    counts = Counter(token for row in rows for token in row)
    told = torch.tensor(rewards, dtype=torch.float64)
    return {
        "length.mean": sum(map(len, rows)) / len(rows),
        "length.max": float(max(map(len, rows))),
        "text.top_id_share": max(counts.values()) / sum(counts.values()),
        "reward.mean": float(told.mean()),
        "reward.group_std": float(told.view(-1, group).std(1).mean()),
    }


def _left_out(values: Tensor) -> Tensor:
    """Each value less the mean of the others of its row."""
    return (values - (values.sum(1, keepdim=True) - values) / (values.shape[1] - 1)).view(-1)
