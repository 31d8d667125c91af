"""slime: functions for its own flags, no edit of its code.

``--custom-rollout-log-function-path rlvitals.integrations.slime.log_rollout`` sees each rollout and pauses;
``--custom-megatron-before-train-step-hook-path rlvitals.integrations.slime.before_train_step`` sees the losses of
all ranks and carries out commands. ``init``, ``postprocess`` and ``log_eval_rollout`` add to them (see
`rlvitals.integrations.slime.support`). Each chains the user's own function, named in an environment variable.

The rollout manager and the training ranks are processes of their own: they write one attempt of one run
(`identity`) as different writers, each with its own metrics, at the number of the optimizer step.
"""

from __future__ import annotations

from rlvitals.integrations.slime.flags import (
    before_train_step,
    init,
    log_eval_rollout,
    log_rollout,
    postprocess,
)

__all__ = ["before_train_step", "init", "log_eval_rollout", "log_rollout", "postprocess"]
