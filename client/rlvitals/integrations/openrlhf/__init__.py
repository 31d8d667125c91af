"""OpenRLHF 0.9.1 to 0.11: watched from its controller, without a patch of its source or of Ray's runtime env.

Start a job as ever, but through ``python -m rlvitals.integrations.openrlhf.launch -m openrlhf.cli.train_ppo_ray``
(the same arguments follow), or call `patch` before a script of your own makes a ``PPOTrainer``.
"""

from __future__ import annotations

from rlvitals.integrations.openrlhf.entry import patch

__all__ = ["patch"]
