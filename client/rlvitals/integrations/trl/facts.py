"""What a trainer is told to do: its settings by the names that rules use, and what it can be asked for."""

from __future__ import annotations

import math
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from rlvitals.contract.command import CommandKind
from rlvitals.contract.metrics import METRICS

NO_COEFFICIENT = "this trainer has no KL coefficient"
BETA_IS_ZERO = "beta is 0: TRL loads no reference model"
NO_REFERENCE = "no reference model was loaded"

ELSEWHERE = {
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
    args = trainer.args
    named = {name: getattr(args, key) for name, key in _ARGUMENTS.items() if getattr(args, key, None) is not None}
    return {
        **named,
        "model": model_name(trainer),
        "kl_coef": kl_coef(trainer),
        "kl_estimator": _estimator(trainer),
        "world_size": trainer.accelerator.num_processes,
        "reward_functions": list(getattr(trainer, "reward_func_names", ())),
        "versions": {name: _version(name) for name in ("trl", "transformers", "accelerate", "torch")},
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
    return str(
        getattr(getattr(trainer.model, "config", None), "_name_or_path", "") or type(trainer.model).__name__
    )


def kl_coef(trainer: Any) -> float | None:
    """The coefficient in force, read from the trainer; None where it has none, or a list of them."""
    value = getattr(trainer, "beta", None)
    if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    return None


def corrects_kl(trainer: Any) -> bool:
    """Whether the loss multiplies the KL estimate by the importance ratio."""
    return bool(getattr(trainer.args, "use_bias_correction_kl", False))


def capabilities(trainer: Any) -> dict[str, str]:
    """Command kind → "" where it can be done, else the reason why not."""
    return {kind.value: "" for kind in CommandKind} | {CommandKind.SET_KL_COEF.value: no_kl_control(trainer)}


def no_kl_control(trainer: Any) -> str:
    """Why the coefficient cannot be changed while the job runs; "" if it can."""
    coefficient = kl_coef(trainer)
    if coefficient is None or not hasattr(trainer, "ref_model"):
        return NO_COEFFICIENT
    if coefficient <= 0:
        return BETA_IS_ZERO
    if trainer.ref_model is None and not hasattr(trainer.accelerator.unwrap_model(trainer.model), "peft_config"):
        return NO_REFERENCE
    return ""


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
    rows = int(model.get_input_embeddings().weight.shape[0])
    return rows or getattr(model.config, "vocab_size", None)


def _estimator(trainer: Any) -> str | None:
    if not kl_coef(trainer):
        return None
    if not hasattr(trainer.args, "num_iterations") or not hasattr(trainer, "epsilon_low"):
        return None
    return "k3 * ratio" if corrects_kl(trainer) else "k3"


def _flat(ids: Any) -> list[int]:
    if ids is None:
        return []
    return [int(i) for i in ids] if isinstance(ids, (list, tuple, set, frozenset)) else [int(ids)]


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
