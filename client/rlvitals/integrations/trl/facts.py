"""What a trainer is told to do: its settings by the names that rules use, and what it can be asked for."""

from __future__ import annotations

import math
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from rlvitals.contract.command import CommandKind
from rlvitals.contract.metrics import METRICS
from rlvitals.knobs import NO_KNOB

NO_COEFFICIENT = "this trainer has no KL coefficient"
SCHEDULED = "beta is a schedule, one value an epoch"
BETA_IS_ZERO = "beta is 0: TRL loads no reference model"
NO_REFERENCE = "no reference model was loaded"
NEVER_STOPS = "this trainer's own loop never asks whether to stop: save a checkpoint and end the job"
NO_TRAINER = "RLVitalsCallback never sees the trainer: rlvitals.attach(trainer) can set it"

ELSEWHERE = {
    "progress.tokens": "this trainer counts no tokens",
    "critic.": "not measured: this trainer has no value head",
    "component.": "derived from rewards/<name>/mean where rules are judged",
    "correction.": "not measured: no vLLM, so nothing is corrected",
    "guard.": "no such guard is switched on",
}
"""How the names of metrics begin that this trainer's tensors do not tell, and why."""

# our name: the trainer's argument
_ARGUMENTS = {
    "group_size": "num_generations",
    "length_cap": "max_completion_length",
    "loss_type": "loss_type",
    "scale_rewards": "scale_rewards",
    "num_iterations": "num_iterations",
    "steps_per_generation": "steps_per_generation",
    "gradient_accumulation_steps": "gradient_accumulation_steps",
    "batch_size": "per_device_train_batch_size",
    "learning_rate": "learning_rate",
    "max_grad_norm": "max_grad_norm",
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "min_p": "min_p",
    "epsilon_low": "epsilon",
    "epsilon_high": "epsilon_high",
    "importance_sampling_level": "importance_sampling_level",
    "mask_truncated_completions": "mask_truncated_completions",
    "use_vllm": "use_vllm",
    "max_steps": "max_steps",
    "seed": "seed",
}


def config(trainer: Any) -> dict[str, object]:
    """The run's settings; the trainer's own arguments are under ``trainer``. The reporter removes secrets."""
    return {
        **settings(trainer.args),
        "model": model_name(trainer),
        "kl_coef": kl_coef(trainer),
        "kl_estimator": _estimator(trainer),
        "kl_in": "reward" if kl_coef(trainer) and rewards_hold_kl(trainer) else None,
        "world_size": trainer.accelerator.num_processes,
        "reward_functions": list(getattr(trainer, "reward_func_names", ())),
    }


def settings(args: Any) -> dict[str, object]:
    """What the trainer's arguments alone say."""
    named = {name: getattr(args, key) for name, key in _ARGUMENTS.items() if getattr(args, key, None) is not None}
    return {
        **named,
        "versions": {name: release(name) for name in ("trl", "transformers", "accelerate", "torch")},
        "trainer": {key: value for key, value in args.to_dict().items() if value is not None},
    }


def elsewhere() -> dict[str, str]:
    """Registered metrics of `ELSEWHERE`, with the reasons."""
    return {
        metric.name: reason
        for start, reason in ELSEWHERE.items()
        for metric in METRICS
        if metric.name.startswith(start)
    }


def model_name(trainer: Any) -> str:
    return name_of(trainer.model)


def name_of(model: Any) -> str:
    return str(getattr(getattr(model, "config", None), "_name_or_path", "") or type(model).__name__)


def coefficient_place(trainer: Any) -> tuple[Any, str] | None:
    """The object and the attribute that the trainer reads its coefficient from; None where it has none.

    Without a reference model ``beta`` is something else: distillation mixes two divergences by it.
    """
    if isinstance(getattr(type(trainer), "beta", None), property):  # OnlineDPO and its kin
        return trainer, "_beta"
    if hasattr(trainer, "beta") and hasattr(trainer, "ref_model"):
        return trainer, "beta"
    return (trainer.args, "kl_coef") if hasattr(trainer.args, "kl_coef") else None


def kl_coef(trainer: Any) -> float | None:
    """The coefficient in force, read from the trainer; None where it has none, or a list of them."""
    place = coefficient_place(trainer)
    value = getattr(*place, None) if place is not None else None
    if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    return None


def corrects_kl(trainer: Any) -> bool:
    """Whether the loss multiplies the KL estimate by the importance ratio."""
    return bool(getattr(trainer.args, "use_bias_correction_kl", False))


def rewards_hold_kl(trainer: Any) -> bool:
    """Whether the KL penalty is part of the reward (RLOO, PPO) and no term of the loss."""
    return any(kind.__name__ in ("RLOOTrainer", "PPOTrainer") for kind in type(trainer).__mro__)


def hides_logprobs(trainer: Any) -> bool:
    """Whether Liger's fused loss computes log-probs for itself, with a coefficient of its own."""
    return fused_loss(trainer) is not None


def fused_loss(trainer: Any) -> Any:
    """Liger's loss object, which older TRL gave the coefficient when the trainer was made; None without it."""
    return getattr(trainer, "liger_grpo_loss", None) or getattr(trainer, "liger_loss", None)


def divided_later(trainer: Any) -> float:
    """What the loss is divided by after it was computed: the accumulation, where the trainer leaves it to that."""
    scaled = getattr(trainer, "loss_is_scaled_for_ga", None)
    if scaled is None:  # transformers before 5.19
        accepts = getattr(trainer, "model_accepts_loss_kwargs", None)
        scaled = getattr(trainer, "compute_loss_func", None) is not None or accepts is not False
    return 1.0 if scaled else accumulation(trainer)


def accumulation(trainer: Any) -> float:
    """Micro-batches of the step in progress."""
    told = getattr(trainer, "current_gradient_accumulation_steps", None)
    return float(told or getattr(trainer.args, "gradient_accumulation_steps", None) or 1)


def capabilities(trainer: Any) -> dict[str, str]:
    """Command kind → "" where it can be done, else the reason why not."""
    return {CommandKind.SET_KL_COEF.value: no_kl_control(trainer)} | loop_capabilities(trainer.args)


def loop_capabilities(args: Any) -> dict[str, str]:
    """What the loop of a trainer with these arguments can do, and why it cannot the rest. Knobs come later."""
    own_loop = hasattr(args, "num_ppo_epochs") and not hasattr(args, "num_iterations")
    can = {kind.value: "" for kind in CommandKind if kind is not CommandKind.SET_KL_COEF}
    cannot = {CommandKind.STOP: NEVER_STOPS if own_loop else "", CommandKind.SET_KNOB: NO_KNOB}
    return can | {kind.value: reason for kind, reason in cannot.items()}


def no_kl_control(trainer: Any) -> str:
    """Why the coefficient cannot be changed while the job runs; "" if it can."""
    place, coefficient = coefficient_place(trainer), kl_coef(trainer)
    if place is None or not hasattr(trainer, "ref_model"):
        return NO_COEFFICIENT
    if coefficient is None:
        return SCHEDULED if isinstance(getattr(*place, None), (list, tuple)) else NO_COEFFICIENT
    if coefficient <= 0:
        return BETA_IS_ZERO
    return NO_REFERENCE if trainer.ref_model is None and not _has_adapter(trainer) else ""


def _has_adapter(trainer: Any) -> bool:
    """With an adapter the reference is the model without it."""
    model = trainer.accelerator.unwrap_model(trainer.model)
    return any(hasattr(part, "peft_config") for part in (model, getattr(model, "policy", None)))


def stop_ids(trainer: Any) -> frozenset[int]:
    """All ids that end a completion: the tokenizer's, those of the generation config, and padding."""
    tokenizer = tokenizer_of(trainer)
    generation = getattr(trainer, "generation_config", None)
    found = (
        getattr(trainer, "eos_token_ids", None),
        getattr(tokenizer, "eos_token_id", None),
        getattr(tokenizer, "pad_token_id", None),
        getattr(generation, "eos_token_id", None),
    )
    return frozenset(token for ids in found for token in _flat(ids))


def tokenizer_of(trainer: Any) -> Any:
    """The tokenizer, also where the trainer holds a multi-modal processor."""
    processing = getattr(trainer, "_tokenizer", None) or trainer.processing_class
    return getattr(processing, "tokenizer", processing)


def embedding_rows(trainer: Any) -> int | None:
    """Rows of the live embedding; the configured number where the weights are sharded away."""
    model = trainer.accelerator.unwrap_model(trainer.model)
    weight = model.get_input_embeddings().weight
    shape = getattr(weight, "ds_shape", weight.shape)
    if len(shape) == 2:
        return int(shape[0])
    # a flat shard
    config = model.config
    return getattr(getattr(config, "get_text_config", lambda: config)(), "vocab_size", None)


def _estimator(trainer: Any) -> str | None:
    if not kl_coef(trainer):
        return None
    if rewards_hold_kl(trainer):
        return str(getattr(trainer.args, "kl_estimator", "k1"))
    if not any(kind.__name__ == "GRPOTrainer" for kind in type(trainer).__mro__):
        return None
    return "k3 * ratio" if corrects_kl(trainer) else "k3"


def _flat(ids: Any) -> list[int]:
    if ids is None:
        return []
    return [int(i) for i in ids] if isinstance(ids, (list, tuple, set, frozenset)) else [int(ids)]


def release(package: str) -> str:
    """The installed release of a package, "" where there is none."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
