"""The names under which each trainer keeps a setting, and what it is where nobody sets it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum


class Trainer(str, Enum):
    TRL = "TRL"
    VERL = "verl"
    OPENRLHF = "OpenRLHF"
    SLIME = "slime"
    UNKNOWN = "unknown"


class Setting(str, Enum):
    """A setting that the checks look at, whatever a trainer calls it."""

    KL_COEF = "kl_coef"
    KL_REWARD_COEF = "kl_reward_coef"
    KL_IN_LOSS = "kl_in_loss"
    KL_IN_REWARD = "kl_in_reward"
    KL_ESTIMATOR = "kl_estimator"
    LEARNING_RATE = "learning_rate"
    LORA_RANK = "lora_rank"
    TEMPERATURE = "temperature"
    TOP_P = "top_p"
    TOP_K = "top_k"
    MIN_P = "min_p"
    REPETITION_PENALTY = "repetition_penalty"
    COMPLETION_LIMIT = "completion_limit"
    PROMPT_LIMIT = "prompt_limit"
    CONTEXT = "context"
    GROUP_SIZE = "group_size"
    ESTIMATOR = "advantage_estimator"
    SAVE_STRATEGY = "save_strategy"
    SAVE_STEPS = "save_steps"
    SAVE_PATH = "save_path"
    SAVE_ONLY_MODEL = "save_only_model"
    TOTAL_STEPS = "total_steps"
    MASK_TRUNCATED = "mask_truncated"
    CLIP_LOW = "clip_low"
    CLIP_HIGH = "clip_high"
    RATIO_LEVEL = "ratio_level"
    GRAD_CLIP = "grad_clip"
    FP16 = "fp16"
    NAN_FILTER = "nan_filter"
    IGNORE_EOS = "ignore_eos"
    MIN_TOKENS = "min_tokens"
    DEVICE_BATCH = "device_batch"
    ACCUMULATION = "accumulation"
    GENERATION_BATCH = "generation_batch"
    STEPS_PER_GENERATION = "steps_per_generation"
    ITERATIONS = "iterations"
    PROMPT_BATCH = "prompt_batch"
    UPDATE_BATCH = "update_batch"
    GPUS_PER_NODE = "gpus_per_node"
    NODES = "nodes"
    ENGINE = "engine"
    SLEEP_MODE = "sleep_mode"


_ACTOR, _ROLLOUT = "actor_rollout_ref.actor.", "actor_rollout_ref.rollout."

KEYS: Mapping[Trainer, Mapping[Setting, tuple[str, ...]]] = {
    Trainer.TRL: {
        Setting.KL_COEF: ("beta", "kl_coef"),
        Setting.LEARNING_RATE: ("learning_rate",),
        Setting.LORA_RANK: ("lora_r", "use_peft"),
        Setting.TEMPERATURE: ("temperature",),
        Setting.TOP_P: ("top_p",),
        Setting.TOP_K: ("top_k",),
        Setting.MIN_P: ("min_p",),
        Setting.REPETITION_PENALTY: ("repetition_penalty",),
        Setting.COMPLETION_LIMIT: ("max_completion_length", "response_length"),
        Setting.PROMPT_LIMIT: ("max_prompt_length",),
        Setting.CONTEXT: ("vllm_max_model_length", "vllm_max_model_len"),
        Setting.GROUP_SIZE: ("num_generations", "rloo_k"),
        Setting.SAVE_STRATEGY: ("save_strategy",),
        Setting.SAVE_STEPS: ("save_steps",),
        Setting.SAVE_ONLY_MODEL: ("save_only_model",),
        Setting.TOTAL_STEPS: ("max_steps",),
        Setting.MASK_TRUNCATED: ("mask_truncated_completions",),
        Setting.CLIP_LOW: ("epsilon",),
        Setting.CLIP_HIGH: ("epsilon_high",),
        Setting.RATIO_LEVEL: ("importance_sampling_level",),
        Setting.GRAD_CLIP: ("max_grad_norm",),
        Setting.FP16: ("fp16",),
        Setting.NAN_FILTER: ("logging_nan_inf_filter",),
        Setting.IGNORE_EOS: ("generation_kwargs.ignore_eos", "ignore_eos"),
        Setting.MIN_TOKENS: ("generation_kwargs.min_new_tokens", "generation_kwargs.min_tokens"),
        Setting.DEVICE_BATCH: ("per_device_train_batch_size",),
        Setting.ACCUMULATION: ("gradient_accumulation_steps",),
        Setting.GENERATION_BATCH: ("generation_batch_size",),
        Setting.STEPS_PER_GENERATION: ("steps_per_generation",),
        Setting.ITERATIONS: ("num_iterations",),
        Setting.ENGINE: ("use_vllm",),
        Setting.SLEEP_MODE: ("vllm_enable_sleep_mode",),
    },
    Trainer.VERL: {
        Setting.KL_COEF: (_ACTOR + "kl_loss_coef",),
        Setting.KL_REWARD_COEF: ("algorithm.kl_ctrl.kl_coef",),
        Setting.KL_IN_LOSS: (_ACTOR + "use_kl_loss",),
        Setting.KL_IN_REWARD: ("algorithm.use_kl_in_reward",),
        Setting.KL_ESTIMATOR: (_ACTOR + "kl_loss_type",),
        Setting.LEARNING_RATE: (_ACTOR + "optim.lr",),
        Setting.LORA_RANK: ("actor_rollout_ref.model.lora_rank",),
        Setting.TEMPERATURE: (_ROLLOUT + "temperature",),
        Setting.TOP_P: (_ROLLOUT + "top_p",),
        Setting.TOP_K: (_ROLLOUT + "top_k",),
        Setting.COMPLETION_LIMIT: ("data.max_response_length", _ROLLOUT + "response_length"),
        Setting.PROMPT_LIMIT: ("data.max_prompt_length", _ROLLOUT + "prompt_length"),
        Setting.CONTEXT: (_ROLLOUT + "max_model_len",),
        Setting.GROUP_SIZE: (_ROLLOUT + "n",),
        Setting.ESTIMATOR: ("algorithm.adv_estimator",),
        Setting.SAVE_STEPS: ("trainer.save_freq",),
        Setting.TOTAL_STEPS: ("trainer.total_training_steps",),
        Setting.CLIP_LOW: (_ACTOR + "clip_ratio_low", _ACTOR + "clip_ratio"),
        Setting.CLIP_HIGH: (_ACTOR + "clip_ratio_high",),
        Setting.RATIO_LEVEL: (_ACTOR + "policy_loss.loss_mode",),
        Setting.GRAD_CLIP: (_ACTOR + "grad_clip", _ACTOR + "optim.clip_grad"),
        Setting.FP16: (_ACTOR + "fsdp_config.dtype", _ACTOR + "fsdp_config.model_dtype"),
        Setting.IGNORE_EOS: (_ROLLOUT + "ignore_eos",),
        Setting.ITERATIONS: (_ACTOR + "ppo_epochs",),
        Setting.PROMPT_BATCH: ("data.train_batch_size",),
        Setting.UPDATE_BATCH: (_ACTOR + "ppo_mini_batch_size",),
        Setting.GPUS_PER_NODE: ("trainer.n_gpus_per_node",),
        Setting.NODES: ("trainer.nnodes",),
        Setting.ENGINE: (_ROLLOUT + "name",),
    },
    Trainer.OPENRLHF: {
        Setting.KL_COEF: ("algo.kl.init_coef", "init_kl_coef"),
        Setting.KL_IN_LOSS: ("algo.kl.use_loss", "use_kl_loss"),
        Setting.KL_ESTIMATOR: ("algo.kl.estimator", "kl_estimator"),
        Setting.LEARNING_RATE: ("actor.adam.lr", "actor_learning_rate"),
        Setting.LORA_RANK: ("ds.lora.rank", "lora_rank"),
        Setting.TEMPERATURE: ("rollout.temperature", "temperature"),
        Setting.TOP_P: ("rollout.top_p", "top_p"),
        Setting.COMPLETION_LIMIT: ("rollout.max_new_tokens", "generate_max_len"),
        Setting.PROMPT_LIMIT: ("data.prompt_max_len", "prompt_max_len"),
        Setting.CONTEXT: ("data.max_len", "max_len"),
        Setting.GROUP_SIZE: ("rollout.n_samples_per_prompt", "n_samples_per_prompt"),
        Setting.ESTIMATOR: ("algo.advantage.estimator", "advantage_estimator"),
        Setting.SAVE_STEPS: ("ckpt.save_steps", "save_steps"),
        Setting.CLIP_LOW: ("actor.eps_clip", "eps_clip"),
        Setting.GRAD_CLIP: ("actor.max_norm", "max_norm"),
        Setting.FP16: ("ds.param_dtype", "param_dtype"),
        Setting.PROMPT_BATCH: ("rollout.batch_size", "rollout_batch_size"),
        Setting.UPDATE_BATCH: ("train.batch_size", "train_batch_size"),
    },
    Trainer.SLIME: {
        Setting.KL_COEF: ("kl_loss_coef",),
        Setting.KL_REWARD_COEF: ("kl_coef",),
        Setting.KL_IN_LOSS: ("use_kl_loss",),
        Setting.KL_ESTIMATOR: ("kl_loss_type",),
        Setting.LEARNING_RATE: ("lr",),
        Setting.TEMPERATURE: ("rollout_temperature",),
        Setting.TOP_P: ("rollout_top_p",),
        Setting.TOP_K: ("rollout_top_k",),
        Setting.COMPLETION_LIMIT: ("rollout_max_response_len",),
        Setting.PROMPT_LIMIT: ("rollout_max_prompt_len",),
        Setting.CONTEXT: ("rollout_max_context_len",),
        Setting.GROUP_SIZE: ("n_samples_per_prompt",),
        Setting.ESTIMATOR: ("advantage_estimator",),
        Setting.SAVE_PATH: ("save",),
        Setting.SAVE_STEPS: ("save_interval",),
        Setting.TOTAL_STEPS: ("num_rollout",),
        Setting.CLIP_LOW: ("eps_clip",),
        Setting.CLIP_HIGH: ("eps_clip_high",),
        Setting.GRAD_CLIP: ("clip_grad",),
        Setting.FP16: ("fp16",),
        Setting.PROMPT_BATCH: ("rollout_batch_size",),
        Setting.UPDATE_BATCH: ("global_batch_size",),
    },
}

DEFAULTS: Mapping[Trainer, Mapping[Setting, object]] = {
    Trainer.TRL: {
        Setting.KL_COEF: 0.0,
        Setting.LEARNING_RATE: 1e-6,
        Setting.TEMPERATURE: 1.0,
        Setting.TOP_P: 1.0,
        Setting.REPETITION_PENALTY: 1.0,
        Setting.GROUP_SIZE: 8,
        Setting.SAVE_STRATEGY: "steps",
        Setting.SAVE_STEPS: 500,
        Setting.MASK_TRUNCATED: False,
        Setting.CLIP_LOW: 0.2,
        Setting.RATIO_LEVEL: "token",
        Setting.GRAD_CLIP: 1.0,
        Setting.NAN_FILTER: True,
        Setting.DEVICE_BATCH: 8,
        Setting.ACCUMULATION: 1,
        Setting.ITERATIONS: 1,
    },
    Trainer.VERL: {
        Setting.KL_COEF: 0.001,
        Setting.KL_REWARD_COEF: 0.001,
        Setting.KL_IN_LOSS: False,
        Setting.KL_IN_REWARD: False,
        Setting.KL_ESTIMATOR: "low_var_kl",
        Setting.LEARNING_RATE: 1e-6,
        Setting.TEMPERATURE: 1.0,
        Setting.TOP_P: 1.0,
        Setting.TOP_K: -1,
        Setting.COMPLETION_LIMIT: 512,
        Setting.PROMPT_LIMIT: 512,
        Setting.GROUP_SIZE: 1,
        Setting.ESTIMATOR: "gae",
        Setting.SAVE_STEPS: -1,
        Setting.CLIP_LOW: 0.2,
        Setting.GRAD_CLIP: 1.0,
        Setting.IGNORE_EOS: False,
        Setting.PROMPT_BATCH: 1024,
        Setting.UPDATE_BATCH: 256,
        Setting.GPUS_PER_NODE: 8,
        Setting.NODES: 1,
    },
    Trainer.OPENRLHF: {
        Setting.KL_COEF: 0.01,
        Setting.KL_IN_LOSS: False,
        Setting.KL_ESTIMATOR: "k1",
        Setting.LEARNING_RATE: 1e-6,
        Setting.TEMPERATURE: 1.0,
        Setting.TOP_P: 1.0,
        Setting.CONTEXT: 2048,
        Setting.GROUP_SIZE: 1,
        Setting.ESTIMATOR: "gae",
        Setting.SAVE_STEPS: -1,
        Setting.CLIP_LOW: 0.2,
        Setting.GRAD_CLIP: 1.0,
        Setting.PROMPT_BATCH: 1024,
        Setting.UPDATE_BATCH: 128,
    },
    Trainer.SLIME: {
        Setting.KL_COEF: 0.0,
        Setting.KL_REWARD_COEF: 0.0,
        Setting.KL_IN_LOSS: False,
        Setting.KL_ESTIMATOR: "k1",
        Setting.TEMPERATURE: 1.0,
        Setting.TOP_P: 1.0,
        Setting.TOP_K: -1,
        Setting.GROUP_SIZE: 1,
        Setting.ESTIMATOR: "grpo",
        Setting.CLIP_LOW: 0.2,
        Setting.GRAD_CLIP: 1.0,
    },
}
"""As of TRL 1.16, verl 0.9, OpenRLHF 0.11 and slime 0.3; a default that changed stands in `changed_default`."""


def changed_default(trainer: Trainer, setting: Setting, version: tuple[int, ...] | None) -> object:
    """A default of an older version, or None where today's holds (or the version is not known)."""
    if trainer is not Trainer.TRL or version is None:
        return None
    if setting is Setting.KL_COEF and version < (0, 19):
        return 0.04
    if setting is Setting.COMPLETION_LIMIT:
        return 256 if version < (1, 10) else 512
    if setting is Setting.PROMPT_LIMIT and version < (0, 25):
        return 512
    return None


def retired(trainer: Trainer, setting: Setting, version: tuple[int, ...] | None) -> bool:
    """Whether this release no longer has the setting, so that what was written there does nothing."""
    return trainer is Trainer.TRL and setting is Setting.PROMPT_LIMIT and version is not None and version >= (1, 0)


MARKS: Mapping[Trainer, frozenset[str]] = {
    Trainer.VERL: frozenset({"actor_rollout_ref", "algorithm.adv_estimator", "trainer.n_gpus_per_node"}),
    Trainer.OPENRLHF: frozenset(
        {"init_kl_coef", "micro_train_batch_size", "micro_rollout_batch_size", "actor_learning_rate", "pretrain"}
        | {"algo", "ckpt", "rollout.batch_size", "train.batch_size", "ds", "generate_max_len"}
    ),
    Trainer.SLIME: frozenset(
        {"hf_checkpoint", "ref_load", "rollout_max_response_len", "num_rollout", "rollout_temperature"}
        | {"kl_loss_coef", "save_interval", "megatron_to_hf_mode", "prompt_data", "rollout_shuffle"}
    ),
    Trainer.TRL: frozenset(
        {"num_generations", "max_completion_length", "per_device_train_batch_size", "output_dir", "save_strategy"}
        | {"beta", "num_iterations", "gradient_accumulation_steps", "reward_weights", "loss_type"}
    ),
}
"""Keys, or beginnings of dotted keys, that only this trainer has."""
