"""First aid against what breaks a run, off unless it is called for: each guard changes the training.

Each does one small thing, says in the run's metrics how often (``guard.…``), and has cases in which it does harm:
docs/guards.md says when *not* to use it. Find the cause; a guard only buys the time.
"""

from __future__ import annotations

from rlvitals.guards.advantages import guard_truncated, scale_truncated
from rlvitals.guards.logits import LogitsClamp, clamp_logits
from rlvitals.guards.mask import ForcedTokens, ForcedTokensError, check_loss_mask
from rlvitals.guards.rewards import Mode, guard_reward

__all__ = [
    "ForcedTokens",
    "ForcedTokensError",
    "LogitsClamp",
    "Mode",
    "check_loss_mask",
    "clamp_logits",
    "guard_reward",
    "guard_truncated",
    "scale_truncated",
]
