"""The functions that slime calls by its flags: the user's own first, ours in the guard, their answer unchanged."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from typing import Any

from rlvitals.guard import Guard

LOG = "RLVITALS_SLIME_LOG_FUNCTION"
EVAL_LOG = "RLVITALS_SLIME_EVAL_LOG_FUNCTION"
BEFORE_STEP = "RLVITALS_SLIME_BEFORE_TRAIN_STEP"
POSTPROCESS = "RLVITALS_SLIME_POSTPROCESS"
INIT = "RLVITALS_SLIME_INIT"
"""Each names the user's own function for a flag that ours has taken, as ``package.module.function``."""


class StoppedOnRequest(RuntimeError):
    """Somebody asked the run to stop, and all ranks have saved: slime has no other way to leave its loop."""


def log_rollout(rollout_id: Any, args: Any, samples: Any, rollout_extra_metrics: Any, rollout_time: Any) -> bool:
    """``--custom-rollout-log-function-path``: completions, rewards, truncation; holds as long as a pause does.

    In the rollout manager, after a generation and before training on it. The user's own function decides whether
    slime's logging goes on; without one it does.
    """
    own = named(LOG)
    answer = bool(own(rollout_id, args, samples, rollout_extra_metrics, rollout_time)) if own else False
    with Guard("slime: a rollout"):
        from rlvitals.integrations.slime import rollout

        rollout.tell(rollout_id, args, samples, rollout_extra_metrics, rollout_time)
    return answer


def log_eval_rollout(rollout_id: Any, args: Any, data: Any, extra_metrics: Any) -> bool:
    """``--custom-eval-rollout-log-function-path``: rewards and truncation of evaluations, at their own cadence."""
    own = named(EVAL_LOG)
    answer = bool(own(rollout_id, args, data, extra_metrics)) if own else False
    with Guard("slime: an evaluation"):
        from rlvitals.integrations.slime import rollout

        rollout.tell_evaluation(rollout_id, args, data, extra_metrics)
    return answer


def before_train_step(
    args: Any, rollout_id: Any, step_id: Any, model: Any, optimizer: Any, opt_param_scheduler: Any
) -> None:
    """``--custom-megatron-before-train-step-hook-path``: commands, on all ranks alike, and the watch over losses.

    Raises `StoppedOnRequest` on all ranks after a stop that somebody asked for, and nothing else of ours.
    """
    own = named(BEFORE_STEP)
    if own:
        own(args, rollout_id, step_id, model, optimizer, opt_param_scheduler)
    stopped = False
    with Guard("slime: before a step"):
        from rlvitals.integrations.slime import train

        stopped = train.step_begins(args, int(rollout_id), int(step_id), model, optimizer, opt_param_scheduler)
    if stopped:
        raise StoppedOnRequest(f"stopped on request before rollout {rollout_id}; see the run's events")


def postprocess(args: Any, rollout_id: Any = None, rollout_data: Any = None) -> None:
    """``--rollout-data-postprocess-path``, in both of its forms: what is known before the update.

    A KL gradient that will be NaN is told before slime stops at it.
    """
    own = named(POSTPROCESS)
    if own:
        own(args) if rollout_data is None else own(args, rollout_id, rollout_data)
    with Guard("slime: the rollout's data"):
        from rlvitals.integrations.slime import train

        train.data_ready(args, rollout_id, rollout_data)


def init(args: Any) -> None:
    """``--custom-megatron-init-path``: takes hold of the loss and of the step on every rank."""
    own = named(INIT)
    if own:
        own(args)
    with Guard("slime: taking hold of the training"):
        from rlvitals.integrations.slime import train

        train.take_hold(args)


def named(variable: str) -> Callable[..., Any] | None:
    """The user's own function. Raises as slime would where there is no such function."""
    path = os.environ.get(variable, "")
    if not path:
        return None
    module, _, name = path.rpartition(".")
    found: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return found
