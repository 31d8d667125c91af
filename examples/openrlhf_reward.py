"""A rule-based reward for `openrlhf_grpo.sh`: sums of two numbers. Run as a script it prints the prompts."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import torch

PROMPTS = 2048


def reward_func(queries: list[str], prompts: list[str], labels: list[str], **_: Any) -> dict[str, Any]:
    """1 where the last number of an answer is the label; ``queries`` are the prompts with their answers."""
    answers = [query[len(prompt) :] for query, prompt in zip(queries, prompts, strict=True)]
    found = [re.findall(r"-?\d+", answer)[-1:] == [label] for answer, label in zip(answers, labels, strict=True)]
    rewards = torch.tensor(found, dtype=torch.float32)
    return {"rewards": rewards, "scores": rewards, "extra_logs": {"right": rewards}}


def main() -> None:
    dice = random.Random(5)
    for _ in range(PROMPTS):
        a, b = dice.randrange(100, 1000), dice.randrange(100, 1000)
        print(json.dumps({"input": f"What is {a} + {b}? End with the number.\nAnswer:", "label": str(a + b)}))


if __name__ == "__main__":
    main()
