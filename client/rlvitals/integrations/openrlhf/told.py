"""What an OpenRLHF run says of itself: its scalars by our names, its model's facts, why something is missing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rlvitals.contract.metrics import METRICS, Family
from rlvitals.guard import attempt
from rlvitals.integrations.loop.facts import WEIGHTED
from rlvitals.integrations.openrlhf.arguments import Arguments
from rlvitals.integrations.openrlhf.rank import Told
from rlvitals.integrations.openrlhf.weights import Weighting

ON_RANKS = (
    "not measured: no actor rank told of a loss in this step (a frozen actor, or a rank that did not answer)"
)
NO_KL = "not measured: this run has no reference model (its KL coefficient began at 0)"
IN_REWARD = "not measured: the KL is a part of the reward here and has no gradient of its own"
NO_PULL = "not measured: this loss weighs tokens in a way that its gradient cannot be told from"
NO_SAMPLER = "not measured: OpenRLHF keeps the engine's log-probs with algo.advantage.is_correction_level only"
NO_ENTROPY = "not measured: OpenRLHF computes it with --actor.entropy_coef only (0 is enough)"
NO_CRITIC = "not measured: this run has no critic"
SHARDED = "not measured: DeepSpeed keeps gradients and weights in pieces, on no rank whole"
_OWN = {
    "kl.parameter_grad_norm": "not measured: another backward pass breaks DeepSpeed's",
    "policy.forced_loss_tokens": "not measured: OpenRLHF has one mask for what was sampled and what is trained on",
    "policy.learning_rate": "the trainer logged no actor_lr in this step",
    "policy.loss": "the trainer logged no policy_loss in this step",
    "gradient.norm": "OpenRLHF logs no actor_grad_norm before 0.9.8, nor while the actor is frozen",
    "gradient.skipped_steps": "bfloat16 has no loss scale, and DeepSpeed keeps that of fp16 to itself",
    "gradient.loss_scale": "bfloat16 has no loss scale, and DeepSpeed keeps that of fp16 to itself",
    "numerics.nonfinite_gradient": "the trainer logged no actor_grad_norm in this step",
    "numerics.nonfinite_logits": "not measured: OpenRLHF hands on log-probs, not logits",
    "critic.clip_share": "not measured: OpenRLHF does not count clipped values",
    "correction.weight_mean": "OpenRLHF logs the share of filtered tokens (is_filter_ratio), not the mean weight",
    "progress.tokens": "OpenRLHF does not count the tokens of a run",
    "progress.epoch": "OpenRLHF counts episodes in its progress bar only",
    "progress.phase_reward_s": "rewards are scored inside generation",
    "progress.phase_eval_s": "OpenRLHF does not log how long its evaluations take",
    "progress.phase_checkpoint_s": "OpenRLHF does not log how long its checkpoints take",
}
# one name in all modes, another quantity in each: ours are measured, theirs stay their own
_THEIRS = ("kl", "logprobs_diff", "response_clip_ratio", "truncated", "return", "values")
_PHASES = {
    "timing/generation": "progress.phase_rollout_s",
    "timing/make_experience": "progress.phase_reference_s",
    "timing/ppo_train": "progress.phase_update_s",
}


def absent_reasons(arguments: Arguments, *, critic: bool) -> dict[str, str]:
    """Metric → why it is missing where nothing was told of it."""
    found = {m.name: ON_RANKS for m in METRICS if m.family in (Family.RATIO, Family.KL, Family.NUMERICS)}
    found |= {m.name: SHARDED for m in METRICS if m.family is Family.GRADIENT}
    found |= {m.name: NO_CRITIC for m in METRICS if m.name.startswith("critic.") and not critic}
    found |= {m.name: "the actor ranks show no GPU" for m in METRICS if m.name.startswith("progress.gpu_memory")}
    found |= {"numerics.nonfinite_weights": SHARDED, "policy.loss_tokens": ON_RANKS}
    found |= {
        m.name: "not measured: logits are not shown" for m in METRICS if m.name.startswith("numerics.logit_")
    }
    found |= {
        f"policy.{name}": NO_ENTROPY for name in ("entropy", "entropy_low_tail", "entropy_p01", "entropy_p10")
    }
    if arguments.get("entropy_coef") is not None:
        tail = "not measured: OpenRLHF gives the mean of the entropy, not that of each token"
        found |= {f"policy.{name}": tail for name in ("entropy_low_tail", "entropy_p01", "entropy_p10")}
    if not arguments.corrects:
        found |= {m.name: NO_SAMPLER for m in METRICS if m.name.startswith(("ratio.rollout_", "correction."))}
        found["numerics.nonfinite_rollout"] = NO_SAMPLER
    found |= _of_kl(arguments)
    own = {name: why for name, why in _OWN.items() if critic or not name.startswith("critic.")}
    return found | own


def _of_kl(arguments: Arguments) -> dict[str, str]:
    if arguments.kl_coef <= 0:
        found = {m.name: NO_KL for m in METRICS if m.family is Family.KL and m.name != "kl.coef"}
        found |= {m.name: NO_KL for m in METRICS if m.name.startswith("ratio.reference_")}
        return found | {"numerics.nonfinite_reference": NO_KL}
    if not arguments.kl_in_loss:
        names = ("kl.grad_l2", "kl.grad_rms", "kl.grad_max", "kl.grad_top_id_share", "kl.nan_gradient_tokens")
        return dict.fromkeys((*WEIGHTED, *names), IN_REWARD)
    return {} if shows_pull(arguments) else dict.fromkeys(("kl.pull_ratio", "kl.share_of_gradient"), NO_PULL)


def shows_pull(arguments: Arguments) -> bool:
    """Whether the policy term's gradient is that of PPO's clip, weighted as the KL term is."""
    plain = (
        not arguments.corrects and arguments.get("dual_clip") is None and not arguments.get("kl_unbiased", False)
    )
    return plain and arguments.get("policy_loss", "ppo") == "ppo"


def for_ranks(arguments: Arguments, ranks: int) -> Told:
    form, (low, high) = arguments.form, arguments.epsilons
    return Told(
        kl_in_loss=arguments.kl_in_loss and arguments.kl_coef > 0,
        estimator=form.estimator,
        clamp=form.clamp,
        epsilon_low=low,
        epsilon_high=high,
        unbiased=bool(arguments.get("kl_unbiased", False)),
        pull=shows_pull(arguments),
        weighting=Weighting(
            by_sequence=arguments.by_sequence,
            dynamic=bool(arguments.get("dynamic_batch", False)),
            accumulation=1,
            ranks=max(1, ranks),
            updates=arguments.updates,
        ),
    )


def scalars(logs: Mapping[str, Any]) -> dict[str, float]:
    """The trainer's own numbers by the names of the registry where they mean the same, else by their own."""
    found: dict[str, float] = {}
    for name, number in numbers(logs).items():
        if name in _PHASES:
            found[_PHASES[name]] = number
        elif name in _THEIRS:
            found[f"openrlhf/{name}"] = number
        else:
            found["gradient.norm" if name == "actor_grad_norm" else name] = number
    return found


def numbers(logs: Mapping[str, Any]) -> dict[str, float]:
    """What of a mapping is a number; NaN and infinities are."""
    found = {str(name): _number(value) for name, value in logs.items()}
    return {name: number for name, number in found.items() if number is not None}


def world(trainer: Any, ranks: int) -> dict[str, object]:
    return {"world_size": ranks, "asynchronous": hasattr(trainer, "rollout_queue")}


def embedding_rows(model: str) -> int | None:
    """Of the model's own configuration; None where it is not on this machine."""

    def read() -> int:
        from transformers import AutoConfig

        config = AutoConfig.from_pretrained(model, local_files_only=True)
        return int(config.get_text_config().vocab_size)

    return attempt(read) if model else None


def stop_ids(tokenizer: Any, model: str) -> tuple[int, ...]:
    """All ids that end a completion: the tokenizer's own, and those of the model's generation config."""

    def read() -> Any:
        from transformers import GenerationConfig

        return GenerationConfig.from_pretrained(model, local_files_only=True)

    from rlvitals.probes.lengths import stop_ids_of

    return tuple(sorted(stop_ids_of(tokenizer, attempt(read) if model else None)))


def _number(value: Any) -> float | None:
    if isinstance(value, (str, list, tuple, dict, bool)) or value is None:
        return None
    return attempt(float, value)
