"""A reward with contrast: the share of lower-case letters, in the form that OpenRLHF asks of a reward function."""

from __future__ import annotations

import string
from typing import Any

import torch


def reward_func(queries: list[str], prompts: list[str], labels: list[str], **_: Any) -> dict[str, Any]:
    found = []
    for query, prompt in zip(queries, prompts, strict=True):
        text = query[len(prompt) :]
        found.append(sum(letter in string.ascii_lowercase for letter in text) / max(len(text), 1))
    rewards = torch.tensor(found)
    return {"rewards": rewards, "scores": rewards, "extra_logs": {"letters": rewards}}
