"""A verl job's configuration → its settings by the names that rules use, and what of it can be measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from rlvitals.guard import attempt, outcome

ACTOR, ROLLOUT = "actor_rollout_ref.actor.", "actor_rollout_ref.rollout."
NO_KL = "this run has no KL term: neither actor.use_kl_loss nor algorithm.use_kl_in_reward is set"
SEQUENCES = ("gspo", "geo_mean")
"""Losses that clip one ratio for a whole completion."""

# name that rules use: keys of verl, the first that is set counts
_NAMED: Mapping[str, tuple[str, ...]] = {
    "group_size": (f"{ROLLOUT}n",),
    "length_cap": ("data.max_response_length",),
    "batch_size": ("data.train_batch_size",),
    "mini_batch_size": (f"{ACTOR}ppo_mini_batch_size",),
    "num_iterations": (f"{ACTOR}ppo_epochs",),
    "loss_type": (f"{ACTOR}loss_agg_mode",),
    "policy_loss": (f"{ACTOR}policy_loss.loss_mode",),
    "advantage_estimator": ("algorithm.adv_estimator",),
    "learning_rate": (f"{ACTOR}optim.lr",),
    "max_grad_norm": (f"{ACTOR}optim.clip_grad", f"{ACTOR}grad_clip", f"{ACTOR}optim.grad_clip"),
    "temperature": (f"{ROLLOUT}temperature",),
    "top_p": (f"{ROLLOUT}top_p",),
    "top_k": (f"{ROLLOUT}top_k",),
    "epsilon_low": (f"{ACTOR}clip_ratio_low", f"{ACTOR}clip_ratio"),
    "epsilon_high": (f"{ACTOR}clip_ratio_high", f"{ACTOR}clip_ratio"),
    "seed": ("data.seed",),
    "sampler": (f"{ROLLOUT}name",),
    "strategy": (f"{ACTOR}strategy",),
}
_ESTIMATORS = {
    "kl": "k1",
    "k1": "k1",
    "abs": "abs",
    "mse": "k2",
    "k2": "k2",
    "low_var_kl": "k3",
    "k3": "k3",
}
UNCLAMPED_BEFORE = (0, 4, 1)
"""verl's first release with a clamp before exp, without which the gradient of a finite KL can be NaN."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KlTerm:
    """Where a run's KL stands: ``place`` is "loss" or "reward". ``estimator`` and ``clamp`` as in `kl_form`."""

    place: str
    coefficient: float
    estimator: str
    clamp: str
    own_name: str


@dataclass(frozen=True, slots=True)
class Settings:
    """``config`` is the whole configuration as plain values, unset keys included."""

    config: Mapping[str, Any] = field(default_factory=dict)
    version: str = ""

    @classmethod
    def of(cls, config: Any) -> Settings:
        """From verl's OmegaConf tree (or mappings); what cannot be resolved stays as it was written."""
        return cls(plain(config), verl_version())

    def get(self, path: str, default: Any = None) -> Any:
        found: Any = self.config
        for key in path.split("."):
            if not isinstance(found, Mapping) or key not in found:
                return default
            found = found[key]
        return default if found is None else found

    def number(self, path: str) -> float | None:
        value = self.get(path)
        return None if value is None or isinstance(value, bool) else attempt(float, value)

    def whole(self, path: str) -> int | None:
        value = self.number(path)
        return None if value is None else int(value)

    @property
    def length_cap(self) -> int | None:
        """Tokens that a completion may have; a window of the engine that is shorter still is not known here."""
        return self.whole("data.max_response_length")

    @property
    def model_folder(self) -> Path | None:
        """Where the model is on this machine; None for a name on a hub, which nobody is asked about."""
        told = self.get("actor_rollout_ref.model.local_path") or self.get("actor_rollout_ref.model.path")
        folder = attempt(Path(str(told)).expanduser) if told else None
        return folder if folder is not None and folder.is_dir() else None

    @property
    def aggregation(self) -> str:
        return str(self.get(f"{ACTOR}loss_agg_mode", "token-mean"))

    @property
    def mini_batches(self) -> int:
        """Optimizer steps that one batch is cut into, in each of its epochs."""
        batch, mini = self.whole("data.train_batch_size"), self.whole(f"{ACTOR}ppo_mini_batch_size")
        return max(1, round(batch / mini)) if batch and mini else 1

    @property
    def epsilons(self) -> tuple[float, float]:
        plain_clip = self.number(f"{ACTOR}clip_ratio")
        low, high = self.number(f"{ACTOR}clip_ratio_low"), self.number(f"{ACTOR}clip_ratio_high")
        fallback = 0.2 if plain_clip is None else plain_clip
        return (fallback if low is None else low), (fallback if high is None else high)

    @property
    def kl(self) -> KlTerm | None:
        """The KL term of the loss, else that of the reward; None where there is neither."""
        if self.get(f"{ACTOR}use_kl_loss", False):
            name, value = self.get(f"{ACTOR}kl_loss_type", "low_var_kl"), self.number(f"{ACTOR}kl_loss_coef")
            return self._term("loss", str(name), value)
        if self.get("algorithm.use_kl_in_reward", False):
            name, value = self.get("algorithm.kl_penalty", "kl"), self.number("algorithm.kl_ctrl.kl_coef")
            return self._term("reward", str(name), value)
        return None

    def _term(self, place: str, name: str, value: float | None) -> KlTerm:
        straight, core = name.endswith("+"), name.rstrip("+")
        estimator = _ESTIMATORS.get(core, "k3")
        # the gradient of any estimator with a + is that of k2
        estimator = "k2" if straight and estimator == "k2" else "k3+" if straight else estimator
        clamp = "none"
        if estimator in ("k3", "k3+"):
            clamp = "after" if version_numbers(self.version) < UNCLAMPED_BEFORE else "before and after"
        return KlTerm(
            place=place,
            coefficient=0.0 if value is None else value,
            estimator=estimator,
            clamp=clamp,
            own_name=name,
        )

    @property
    def bypasses(self) -> bool:
        """Whether the sampler's log-probs stand in for the old ones: then their ratio is 1 by construction."""
        return bool(self.get("algorithm.rollout_correction.bypass_mode", False))

    @property
    def rejects(self) -> bool:
        """Whether the response mask leaves out tokens that the policy wrote, to correct for the sampler."""
        return bool(self.get("algorithm.rollout_correction.rollout_rs"))

    @property
    def distills(self) -> bool:
        return bool(self.get("distillation.enabled", False))

    def named(self) -> dict[str, object]:
        """The settings by the names that rules use; the trainer's whole configuration is under ``trainer``."""
        found: dict[str, object] = {}
        for name, paths in _NAMED.items():
            value = next((got for got in map(self.get, paths) if got is not None), None)
            if value is not None:
                found[name] = value
        term = self.kl
        if term is not None:
            found |= {"kl_coef": term.coefficient, "kl_estimator": term.estimator, "kl_place": term.place}
            target = self.number("algorithm.kl_ctrl.target_kl")
            if term.place == "reward" and self.get("algorithm.kl_ctrl.type") == "adaptive" and target:
                found["kl_target"] = target
        return {
            **found,
            "importance_sampling_level": "sequence" if self.sequence_level else "token",
            "skips_nonfinite_updates": int(version_numbers(self.version) >= (0, 4, 0)),
            "world_size": (self.whole("trainer.nnodes") or 1) * (self.whole("trainer.n_gpus_per_node") or 1),
            "versions": {
                name: _version(name) for name in ("verl", "torch", "transformers", "ray", "vllm", "sglang")
            },
            "trainer": self.config,
        }

    @property
    def sequence_level(self) -> bool:
        return str(self.get(f"{ACTOR}policy_loss.loss_mode", "vanilla")) in SEQUENCES


def plain(config: Any) -> Mapping[str, Any]:
    """A configuration as mappings, lists and plain values; empty where it is none."""
    if isinstance(config, Mapping) and not hasattr(config, "_metadata"):
        return config
    found, error = outcome(_resolved, config)
    if error:
        found = attempt(_unresolved, config)
    return found if isinstance(found, Mapping) else {}


def _resolved(config: Any) -> Any:
    from omegaconf import OmegaConf

    return OmegaConf.to_container(config, resolve=True)


def _unresolved(config: Any) -> Any:
    from omegaconf import OmegaConf

    return OmegaConf.to_container(config, resolve=False)


def version_numbers(text: str) -> tuple[int, ...]:
    """The numbers of a release: ``0.3.0.post1`` gives (0, 3, 0). A version that is not known counts as new."""
    numbers = []
    for part in text.split("."):
        if not part.isdecimal():
            break
        numbers.append(int(part))
    return tuple(numbers) or (1 << 30,)


def verl_version() -> str:
    return _version("verl")


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
