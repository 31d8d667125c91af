"""The numbers of a step that no tensor tells: the trainer's own log, the rate, the coefficient, the time."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from rlvitals.integrations.steps import Step
from rlvitals.integrations.trl import facts
from rlvitals.integrations.trl.metrics_tail import is_users_own, mean

LOGGED = {"entropy": "policy.entropy", "sampling/importance_sampling_ratio/mean": "correction.weight_mean"}
"""What is taken from the trainer's own log, where its tensors do not tell."""
LOGGED_REWARDS = {
    "reward": "reward.mean",
    "reward_std": "reward.group_std",
    "frac_reward_zero_std": "reward.zero_std_groups",
}
"""The same of trainers that show no rewards: before TRL 0.27 ``reward_std`` is the mean over groups."""


def read_step_values(
    trainer: Any, fresh: Mapping[str, Sequence[float]], done: Step, *, rewards_shown: bool
) -> dict[str, float]:
    """``fresh`` are the values that came into the trainer's own metrics in this step."""
    state = trainer.state
    values = {key: mean(numbers) for key, numbers in fresh.items() if is_users_own(key)}
    values["progress.step_time"] = time.perf_counter() - done.began_s
    if state.epoch is not None:
        values["progress.epoch"] = float(state.epoch)
    if getattr(state, "num_input_tokens_seen", 0):
        values["progress.tokens"] = float(state.num_input_tokens_seen)
    for key, name in (LOGGED if rewards_shown else LOGGED | LOGGED_REWARDS).items():
        # of a step without a token in the loss the trainer logs an entropy of 0
        if key in fresh and not (key == "entropy" and done.entropy_shown):
            values[name] = mean(fresh[key])
    if done.learning_rate is not None:
        values["policy.learning_rate"] = done.learning_rate
    coefficient = facts.kl_coef(trainer)
    if coefficient is not None:
        values["kl.coef"] = coefficient
    return values
