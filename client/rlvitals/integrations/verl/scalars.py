"""What verl logs → what is told: training values by their names, a validation apart, and no ratio that is none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rlvitals.contract.evaluation import is_evaluated
from rlvitals.guard import attempt

STEP = ("training/global_step", "actor/grad_norm", "actor/pg_loss")
"""One of these is in what is logged of a training step, in every version; never in a validation's."""
NOT_TOLD = ("clip_ratio",)
"""Ends of names that mean another thing in each trainer: V1 counts the longest completion as cut."""
_PHASES: Mapping[str, tuple[str, ...]] = {
    "progress.phase_rollout_s": ("gen", "generate_sequences", "gen_max"),
    "progress.phase_reward_s": ("reward",),
    "progress.phase_reference_s": ("old_log_prob", "ref", "ref_log_prob", "RefPolicy"),
    "progress.phase_update_s": ("update_actor", "update_critic", "update_weights", "adv", "values"),
    "progress.phase_eval_s": ("testing",),
    "progress.phase_checkpoint_s": ("save_checkpoint",),
}
_AT_TIMES = ("progress.phase_eval_s", "progress.phase_checkpoint_s")
"""Phases that verl times in the steps in which they happen."""
_PREFIX = "timing_s/"
_PEAKS = ("actor/perf/max_memory_allocated_gb", "perf/max_memory_allocated_gb")
GIB = float(1 << 30)
IN_REWARD = "actor/reward_kl_penalty_coeff"


def is_step(data: Mapping[str, Any]) -> bool:
    return any(name in data for name in STEP)


def evaluation(data: Mapping[str, Any]) -> dict[str, float]:
    """Validation metrics by verl's own names."""
    return {name: value for name, value in numbers(data).items() if is_evaluated(name)}


def told(data: Mapping[str, Any]) -> dict[str, float]:
    """All numbers of a training step but a validation's in it; its phases by the registry's names."""
    found = numbers(data)
    kept = {n: v for n, v in found.items() if not is_evaluated(n) and not n.endswith(NOT_TOLD)}
    for metric, parts in _PHASES.items():
        seconds = [found[_PREFIX + part] for part in parts if _PREFIX + part in found]
        if seconds:
            kept[metric] = sum(seconds)
        elif metric in _AT_TIMES and f"{_PREFIX}step" in found:
            kept[metric] = 0.0
    peak = next((found[name] for name in _PEAKS if found.get(name)), None)
    if peak is not None:
        kept["progress.gpu_memory_peak_bytes"] = peak * GIB
    if IN_REWARD in found:
        # what this step's rewards were made with; an adaptive controller has gone on already
        kept["kl.coef"] = found[IN_REWARD]
    return kept


def numbers(data: Mapping[str, Any]) -> dict[str, float]:
    """What is a number, NaN and infinities among it: numpy's and one-element tensors too."""
    found = {}
    for name, value in data.items():
        if isinstance(value, (str, bytes, bool, list, tuple, dict)) or value is None:
            continue
        number = attempt(float, value)
        if number is not None:
            found[str(name)] = number
    return found
