"""A real GRPO loop written by hand, of milliseconds a step: what `rlvitals.run` is put into."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import log_softmax

from rlvitals.integrations.loop import Vitals

VOCABULARY, STOP, CAP, GROUP, PROMPTS, MICRO = 24, 0, 10, 4, 2, 2
EPSILON = 0.2


class Policy(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, 16)
        self.cell = nn.GRU(16, 16, batch_first=True)
        self.head = nn.Linear(16, VOCABULARY)

    def forward(self, ids: Tensor) -> Tensor:
        hidden: Tensor = self.head(self.cell(self.embedding(ids))[0])
        return hidden


@dataclass(slots=True)
class Loop:
    """``told`` changes what the loop tells us, never what it trains on; ``prepare`` is accelerate's."""

    steps: int = 3
    seed: int = 11
    beta: float = 0.05
    told: Callable[[dict[str, Any]], dict[str, Any]] = field(default=lambda given: given)
    prepare: Callable[..., Any] = field(default=lambda *all: all)
    backward: Callable[[Tensor], None] = field(default=lambda loss: loss.backward())
    reference: Any = None
    policy: Any = None
    optimizer: Any = None

    def __post_init__(self) -> None:
        torch.manual_seed(7)
        model = Policy()
        self.reference = Policy().requires_grad_(False)
        self.reference.load_state_dict(model.state_dict())
        self.policy, self.optimizer = self.prepare(model, torch.optim.AdamW(model.parameters(), lr=1e-2))
        torch.manual_seed(self.seed)

    def facts(self) -> dict[str, Any]:
        """What `rlvitals.run` is told of this loop."""
        return {
            "model": self.policy,
            "optimizer": self.optimizer,
            "embedding_rows": VOCABULARY,
            "stop_ids": [STOP],
            "length_cap": CAP,
            "group_size": GROUP,
            "kl_coef": lambda: self.beta,
            "loss_type": "grpo",
            "accumulation": MICRO,
        }

    def train(self, vitals: Vitals | None = None, on_step: Callable[[int], None] = lambda step: None) -> None:
        for step in range(1, self.steps + 1):
            ids, old = self._sample()
            mask = (torch.cumsum(ids == STOP, 1) - (ids == STOP).long()) == 0
            rewards = ((ids % 2 == 0) & mask).float().sum(1) + ids[:, 0] / 100
            grouped = rewards.view(PROMPTS, GROUP)
            spread = grouped.std(1, keepdim=True) + 1e-4
            advantages = ((grouped - grouped.mean(1, keepdim=True)) / spread).reshape(-1)
            if vitals is not None:
                vitals.rollout(ids, mask.sum(1), rewards=rewards, prompts=["say"] * len(ids))
            for rows in torch.arange(len(ids)).split(len(ids) // MICRO):
                self._update(ids[rows], old[rows], mask[rows], advantages[rows], rows, vitals)
            norm = nn.utils.clip_grad_norm_(self.policy.parameters(), 1.0)
            if vitals is not None:
                vitals.gradient(norm)
            self.optimizer.step()
            self.optimizer.zero_grad()
            on_step(step)
            if vitals is not None:
                vitals.step(step)
                if vitals.should_stop:
                    return

    def weights(self) -> str:
        """Of every bit of the policy, and of the random numbers that would come next."""
        digest = hashlib.sha256(torch.get_rng_state().numpy().tobytes())
        for value in self.policy.state_dict().values():
            digest.update(value.detach().contiguous().numpy().tobytes())
        return digest.hexdigest()

    def _sample(self) -> tuple[Tensor, Tensor]:
        """``ids`` (B, T) and their log-probs; what stands behind a stop is not masked yet."""
        ids = torch.ones(PROMPTS * GROUP, 1, dtype=torch.long)
        with torch.no_grad():
            for _ in range(CAP):
                probs = log_softmax(self.policy(ids)[:, -1], -1).exp()
                ids = torch.cat([ids, torch.multinomial(probs, 1)], 1)
            return ids[:, 1:], _logp(self.policy, ids[:, 1:])

    def _update(
        self, ids: Tensor, old: Tensor, mask: Tensor, advantages: Tensor, rows: Tensor, vitals: Vitals | None
    ) -> None:
        logp, ref = _logp(self.policy, ids), _logp(self.reference, ids)
        ratio = (logp - old).exp()
        pull = torch.minimum(
            ratio * advantages[:, None], ratio.clamp(1 - EPSILON, 1 + EPSILON) * advantages[:, None]
        )
        kl = (ref - logp).exp() - (ref - logp) - 1
        by_row = ((self.beta * kl - pull) * mask).sum(1) / mask.sum(1)
        loss = by_row.mean() / MICRO
        if vitals is not None:
            given = {"logp": logp, "old": old, "ref": ref, "advantages": advantages, "mask": mask, "ids": ids}
            vitals.loss(loss, **self.told({**given, "rows": rows}))
        self.backward(loss)


def _logp(model: nn.Module, ids: Tensor) -> Tensor:
    begin = torch.ones(len(ids), 1, dtype=torch.long)
    logits = model(torch.cat([begin, ids[:, :-1]], 1))
    return log_softmax(logits, -1).gather(2, ids[:, :, None])[:, :, 0]
