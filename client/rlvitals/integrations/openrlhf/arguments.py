"""OpenRLHF's arguments, flat (until 0.10.1) or dotted: by the names that rules use, and what follows from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from rlvitals.config import REMOVED
from rlvitals.probes.kl_form import FORMS, Form

SECRETS = ("logger.wandb.key", "use_wandb")
"""Arguments that hold an API key under a name that does not say so."""
CLAMPED_BEFORE_EXP = (0, 11, 2)
"""The first release whose k3 is bounded before exp, so that its gradient stays finite."""
_NAMES: Mapping[str, tuple[str, ...]] = {
    "kl_coef": ("algo.kl.init_coef", "init_kl_coef"),
    "kl_target": ("algo.kl.target", "kl_target"),
    "kl_estimator": ("algo.kl.estimator", "kl_estimator"),
    "kl_in_loss": ("algo.kl.use_loss", "use_kl_loss"),
    "kl_unbiased": ("algo.kl.unbiased_gradient",),
    "advantage_estimator": ("algo.advantage.estimator", "advantage_estimator"),
    "correction": ("algo.advantage.is_correction_level", "enable_vllm_is_correction"),
    "group_size": ("rollout.n_samples_per_prompt", "n_samples_per_prompt"),
    "prompt_batch_size": ("rollout.batch_size", "rollout_batch_size"),
    "train_batch_size": ("train.batch_size", "train_batch_size"),
    "num_iterations": ("train.max_epochs", "max_epochs"),
    "length_cap": ("rollout.max_new_tokens", "max_new_tokens", "generate_max_len"),
    "max_len": ("data.max_len", "max_len"),
    "temperature": ("rollout.temperature", "temperature"),
    "top_p": ("rollout.top_p", "top_p"),
    "eps_clip": ("actor.eps_clip", "eps_clip"),
    "eps_clip_low_high": ("actor.eps_clip_low_high", "eps_clip_low_high"),
    "dual_clip": ("actor.dual_clip", "dual_clip"),
    "policy_loss": ("actor.policy_loss_type", "policy_loss_type"),
    "aggregation": ("actor.loss_agg_mode", "loss_agg_mode"),
    "entropy_coef": ("actor.entropy_coef", "entropy_loss_coef"),
    "learning_rate": ("actor.adam.lr", "actor_learning_rate"),
    "max_grad_norm": ("actor.max_norm", "max_norm"),
    "dynamic_batch": ("train.dynamic_batch_enable", "use_dynamic_batch"),
    "model": ("actor.model_name_or_path", "pretrain"),
    "run_name": ("logger.wandb.run_name", "wandb_run_name"),
    "logging_steps": ("logger.logging_steps", "logging_steps"),
    "save_steps": ("ckpt.save_steps", "save_steps"),
    "save_path": ("ckpt.path", "ckpt_path"),
    "save_no_state": ("ckpt.disable_ds", "disable_ds_ckpt"),
    "save_hf": ("ckpt.save_hf", "save_hf_ckpt"),
    "resumes": ("ckpt.load_enable", "load_checkpoint"),
    "seed": ("train.seed", "seed"),
}
_TOLD = (
    "group_size",
    "prompt_batch_size",
    "train_batch_size",
    "num_iterations",
    "length_cap",
    "temperature",
    "top_p",
    "seed",
    "learning_rate",
    "max_grad_norm",
    "advantage_estimator",
    "policy_loss",
    "kl_target",
)


def installed_version() -> str:
    try:
        return version("openrlhf")
    except PackageNotFoundError:
        return ""


@dataclass(frozen=True, slots=True)
class Arguments:
    """``namespace`` is the trainer's own: nested since 0.10.2, with dotted names on the command line."""

    namespace: Any
    release: str = ""

    def get(self, name: str, default: Any = None) -> Any:
        """By our name; ``default`` where this release has no such argument, or it is not set."""
        for path in _NAMES[name]:
            owner, key = self._place(path)
            value = getattr(owner, key, None) if key else None
            if value is not None:
                return value
        return default

    def put(self, name: str, value: Any) -> Any:
        """Sets an argument that exists, and returns what it was. Raises AttributeError where there is none."""
        for path in _NAMES[name]:
            owner, key = self._place(path)
            if key and hasattr(owner, key):
                before = getattr(owner, key)
                setattr(owner, key, value)
                return before
        raise AttributeError(f"OpenRLHF's arguments have no {' or '.join(_NAMES[name])}")

    @property
    def kl_coef(self) -> float:
        return float(self.get("kl_coef", 0.0))

    @property
    def kl_in_loss(self) -> bool:
        return bool(self.get("kl_in_loss", False))

    @property
    def form(self) -> Form:
        """The KL term as the loss differentiates it. An unbiased one is straight through."""
        estimator = str(self.get("kl_estimator", "k1"))
        if self.get("kl_unbiased", False):
            return Form("k3+" if estimator == "k3" else "k2")
        old = estimator == "k3" and bool(self.release) and numbers(self.release) < CLAMPED_BEFORE_EXP
        return FORMS.get(("openrlhf 0.11.1" if old else "openrlhf", estimator), FORMS["openrlhf", "k1"])

    @property
    def epsilons(self) -> tuple[float, float]:
        low_high = self.get("eps_clip_low_high")
        if low_high is not None:
            return float(low_high[0]), float(low_high[1])
        return float(self.get("eps_clip", 0.2)), float(self.get("eps_clip", 0.2))

    @property
    def corrects(self) -> bool:
        """Whether the loss is weighted by the ratio of trainer and sampler."""
        return self.get("correction", "off") not in ("off", False)

    @property
    def by_sequence(self) -> bool:
        """Whether each completion weighs the same in the loss, however long it is."""
        return bool(self.get("aggregation", "token-mean") != "token-mean" or self.get("policy_loss") == "gspo")

    @property
    def updates(self) -> int:
        """Optimizer steps that one rollout is cut into."""
        samples = int(self.get("prompt_batch_size", 1)) * int(self.get("group_size", 1))
        return max(1, samples // max(1, int(self.get("train_batch_size", 1)))) * int(self.get("num_iterations", 1))

    def config(self) -> dict[str, object]:
        """All arguments by their names on the command line, and some by those that rules use; no secrets."""
        found = dict(_flat(self.namespace, ""))
        found |= {name: REMOVED for name in SECRETS if isinstance(found.get(name), str)}
        named = {name: self.get(name) for name in _TOLD}
        named["importance_sampling_level"] = "sequence" if named["policy_loss"] == "gspo" else "token"
        named["kl_in_loss"] = self.kl_in_loss
        if named["advantage_estimator"] == "group_norm":
            named["scale_rewards"] = "group"
        return found | {name: value for name, value in named.items() if value is not None}

    def _place(self, path: str) -> tuple[Any, str]:
        """The object that holds an argument, and its name there; an empty name where there is none."""
        *heads, key = path.split(".")
        owner = self.namespace
        for head in heads:
            owner = getattr(owner, head, None)
        return owner, key if owner is not None else ""


def numbers(release: str) -> tuple[int, ...]:
    """The leading numbers of a version: 0.10.1.post2 → (0, 10, 1)."""
    found = []
    for part in release.split("."):
        if not part.isdecimal():
            break
        found.append(int(part))
    return tuple(found)


def _flat(namespace: Any, prefix: str) -> Any:
    for key, value in sorted(getattr(namespace, "__dict__", {}).items()):
        if hasattr(value, "__dict__") and not callable(value):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
