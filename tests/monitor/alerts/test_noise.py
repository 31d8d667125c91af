"""Healthy runs of noisy, small batches: whatever chance does, no rule warns."""

from __future__ import annotations

import math
import random
from datetime import datetime, timezone

import pytest

from rlvitals.contract.alert import Severity
from rlvitals_monitor.alerts.replay import Step, episodes, replay
from rlvitals_monitor.rules.loader import load_rules

NOW = datetime(2026, 1, 1, tzinfo=timezone.utc)
STEPS = 250


class Chance:
    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def share(self, count: int, rate: float) -> float:
        """Of ``count`` draws, those that hit."""
        return sum(self._random.random() < rate for _ in range(count)) / count

    def around(self, level: float, spread: float, least: float = -math.inf) -> float:
        return max(least, self._random.gauss(level, spread))

    def times(self, level: float, spread: float) -> float:
        """Lognormal: what is never below 0 and swings by factors."""
        return level * math.exp(self._random.gauss(0.0, spread))


def healthy(seed: int, group: int, loops: float, specials: float) -> list[Step]:
    """Answers get longer and better, entropy falls, the critic learns; batches are of ``group`` answers."""
    chance = Chance(seed)
    steps: list[Step] = []
    for at in range(STEPS):
        young, right = math.exp(-at / 60), min(0.8, 0.3 + at / 1000)
        values = {
            "text.looping_completions": chance.share(min(group, 16), loops),
            "text.special_inside": chance.share(group, specials),
            "text.longest_run": float(int(chance.times(6.0, 0.6))),
            "text.foreign_script_share": chance.around(0.03, 0.02, 0.0),
            "text.script_drift": chance.around(0.03, 0.02, 0.0),
            "text.duplicate_rate": chance.share(group, 0.1),
            "critic.value_loss": chance.times(0.2 + 0.8 * young, 0.5),
            "critic.gradient_norm": chance.times(1.0 + 3.0 * young, 0.5),
            "critic.explained_variance": chance.around(min(0.9, at / 60 - 1), 0.3),
            "ratio.clip_share": chance.around(0.05, 0.03, 0.0),
            "correction.weight_mean": chance.around(0.97, 0.03),
            "kl.overflow_margin": 88.7 - min(12.0, 2 + at / 60) - chance.times(2.0, 0.7),
            "policy.entropy_low_tail": chance.around(min(0.9, 0.6 + at / 2000), 0.02),
            "policy.entropy": chance.around(0.3 + young, 0.03),
            "gradient.skipped_steps": chance.share(1, 0.01),
            "length.mean": chance.around(300 + at / 5, 20.0),
            "length.max": 1024.0,
            "length.truncation_rate": chance.share(group, 0.05),
            "rewards/accuracy/mean": (accuracy := chance.share(group, right)),
            "rewards/brevity/mean": (brevity := chance.around(0.5 - at / 1000, 0.05)),
            "reward.mean": accuracy + brevity,
        }
        steps.append((at + 1, NOW, values))
    return steps


@pytest.mark.parametrize(
    ("seed", "group", "loops", "specials"),
    [(1, 8, 0.15, 0.02), (2, 8, 0.05, 0.0), (3, 16, 0.1, 0.02), (4, 64, 0.01, 0.002), (5, 256, 0.15, 0.02)],
)
def test_a_healthy_run_of_a_small_batch_gives_no_warning(
    seed: int, group: int, loops: float, specials: float
) -> None:
    found = episodes(replay(load_rules(), healthy(seed, group, loops, specials), {}))
    assert [(e.alert, e.fired) for e in found if e.severity is not Severity.INFO] == []
