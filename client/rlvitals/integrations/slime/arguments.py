"""slime's ``args`` → what the loop's facts and the step's number need; whatever is not there is left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rlvitals.contract.metrics import METRICS, Family
from rlvitals.guard import attempt

OURS = "rlvitals.integrations.slime"
ROLLOUT_FLAG = "custom_rollout_log_function_path"
STEP_FLAG = "custom_megatron_before_train_step_hook_path"
INIT_FLAG = "custom_megatron_init_path"
POSTPROCESS_FLAG = "rollout_data_postprocess_path"
_OF_ROLLOUT = frozenset({Family.TEXT, Family.LENGTH, Family.REWARD, Family.COMPONENT, Family.GUARD})
ROLLOUT_TELLS = frozenset(
    {metric.name for metric in METRICS if metric.family in _OF_ROLLOUT and "advantage" not in metric.name}
    | {"numerics.nonfinite_rewards", "progress.phase_rollout_s"}
)
CRITIC_TELLS = frozenset(metric.name for metric in METRICS if metric.family is Family.CRITIC)
TRAIN_TELLS = frozenset(metric.name for metric in METRICS if metric.family is not Family.SELF) - ROLLOUT_TELLS
NO_TRAIN_HOOK = f"not measured: it needs --{STEP_FLAG.replace('_', '-')} {OURS}.before_train_step"
REUSED = (
    "slime takes the log-probs of the update's own pass as the old ones where a rollout has one optimizer step: "
    "the ratio is 1 by construction"
)
_ABSENT = {
    "kl.parameter_grad_norm": "not measured: it would need a second backward pass",
    "gradient.update_ratio": "not measured: Megatron's distributed optimizer keeps the weights in shards",
    "gradient.unchanged_share": "not measured: Megatron's distributed optimizer keeps the weights in shards",
    "gradient.nonfinite_parameters": "not measured: Megatron's gradients live in shared buffers",
    "gradient.top_parameter_share": "not measured: Megatron's gradients live in shared buffers",
    "policy.forced_loss_tokens": "not measured: slime's loss mask is all that tells who wrote a token",
    "policy.entropy": "not measured: the loss was not seen (see the hook table)",
}


def is_ours(args: Any, flag: str) -> bool:
    """Whether the job's flag names one of our functions."""
    return str(getattr(args, flag, None) or "").startswith(OURS)


def steps_per_rollout(args: Any) -> int:
    """Optimizer steps that train on one rollout, as slime's arguments have it; 1 where they do not say."""
    told = attempt(int, getattr(args, "num_steps_per_rollout", None))
    if told:
        return max(told, 1)
    samples = [attempt(int, getattr(args, name, None)) for name in ("rollout_batch_size", "n_samples_per_prompt")]
    batch = attempt(int, getattr(args, "global_batch_size", None))
    return max(samples[0] * samples[1] // batch, 1) if samples[0] and samples[1] and batch else 1


def number_of(args: Any, rollout_id: int, step_id: int = 0) -> int:
    """The optimizer step's number, from 0 on; a rollout has that of its first one.

    Where a rollout has more steps than the arguments say, the last ones share a number: it never goes back.
    """
    steps = steps_per_rollout(args)
    return rollout_id * steps + min(step_id, steps - 1)


def training_facts(args: Any) -> dict[str, Any]:
    """Arguments of `Facts` that the loss depends on."""
    estimator = str(getattr(args, "kl_loss_type", None) or "k3")
    facts: dict[str, Any] = {
        "kl_estimator": estimator,
        "kl_clamp": "after" if estimator == "low_var_kl" else None,
        "loss_type": "cispo" if getattr(args, "advantage_estimator", "") == "cispo" else None,
        "epsilon": attempt(float, getattr(args, "eps_clip", None)) or 0.2,
        "epsilon_high": attempt(float, getattr(args, "eps_clip_high", None)),
        "absent": reasons(args),
    }
    if coefficient_name(args):
        facts["kl_coef"] = lambda: float(getattr(args, coefficient_name(args)))
    return facts


def reasons(args: Any) -> Mapping[str, str]:
    """Why some metrics are missing with these arguments."""
    found = dict(_ABSENT)
    if reuses_logprobs(args):
        ratios = ("max", "min", "log_abs_p999", "ess", "beyond_count", "clip_low_share", "clip_high_share")
        found |= {f"ratio.{name}": REUSED for name in (*ratios, "clip_share", "approx_kl")}
    if not getattr(args, "use_critic", False):
        found |= dict.fromkeys(CRITIC_TELLS, "the run has no critic")
    return found


def reuses_logprobs(args: Any) -> bool:
    """Whether slime skips the pass for the old log-probs (its own rule, as far as arguments tell)."""
    exceptions = ("use_rollout_logprobs", "get_mismatch_metrics", "use_critic", "keep_old_actor", "use_opd")
    return (
        steps_per_rollout(args) == 1
        and getattr(args, "loss_type", "policy_loss") == "policy_loss"
        and not getattr(args, "kl_coef", 0)
        and not any(getattr(args, name, False) for name in exceptions)
        and getattr(args, "advantage_estimator", "") != "gspo"
    )


def coefficient_name(args: Any) -> str:
    """The argument that holds the KL coefficient in force, "" where no reference model was loaded for one."""
    if getattr(args, "use_kl_loss", False):
        return "kl_loss_coef"
    shaping = getattr(args, "advantage_estimator", "") not in ("grpo", "gspo", "cispo")
    return "kl_coef" if getattr(args, "kl_coef", 0) and shaping else ""
