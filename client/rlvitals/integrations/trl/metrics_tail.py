"""The new tail of the trainer's own metrics: per-step values, whatever its logging interval averages over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

# what TRL logs and we measure ourselves, by step and with its own definition
OURS = (
    "completions/",
    "clip_ratio/",
    "sampling/",
    "rewards/",
    "reward",
    "reward_std",
    "frac_reward_zero_std",
    "kl",
    "entropy",
    "num_tokens",
    "step_time",
    "clip_ratio",
    "completion_length",
)


class Tail:
    """TRL appends to lists and drops them when it logs; new lists are known by their identity."""

    def __init__(self) -> None:
        self._read: dict[str, tuple[list[float], int]] = {}

    def new(self, metrics: Mapping[str, list[float]]) -> dict[str, list[float]]:
        """Key → values that came since the last call; keys without any are left out."""
        found: dict[str, list[float]] = {}
        for key, values in metrics.items():
            known, count = self._read.get(key, (values, 0))
            fresh = values[count:] if known is values and count <= len(values) else values[:]
            self._read[key] = values, len(values)
            if fresh:
                found[key] = fresh
        return found


def of_training(trainer: Any) -> Mapping[str, list[float]]:
    """The trainer's own metrics; before 0.16 those of training and evaluation are in one table."""
    metrics: Mapping[str, Any] = getattr(trainer, "_metrics", None) or {}
    found: Mapping[str, list[float]] = metrics.get("train", metrics)
    return found


def is_users_own(key: str) -> bool:
    """True for metrics that no registered one stands for: a user's ``log_metric``, …"""
    return not any(key == ours or (ours.endswith("/") and key.startswith(ours)) for ours in OURS)


def mean(values: Sequence[float]) -> float:
    """NaN if one is: a monitor must not filter it as the trainer's log does."""
    return sum(values) / len(values)


def numbers(logs: Mapping[str, Any]) -> dict[str, float]:
    """What a trainer logs without what is no number; NaN and infinities are values."""
    return {
        name: float(value)
        for name, value in logs.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool)
    }


def evaluated(logs: Mapping[str, float]) -> dict[str, float]:
    """What of it an evaluation measured: a record of its own, and no training step."""
    return {name: value for name, value in logs.items() if name.startswith("eval_")}
