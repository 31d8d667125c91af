"""What trainers' own names mean here: one table, looked up exactly, then by suffix, then by words.

Only names whose quantity is the registry's own are in it; where a trainer's definition differs in a way that a
person must know, ``Alias.note`` says how. A name that is not found stays the user's own. What a name means in the
log of one trainer and not in another's is in `rlvitals.contract.dialects`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from rlvitals.contract.metrics import BY_NAME


class Match(str, Enum):
    """How a name was recognised."""

    EXACT = "exact"
    SUFFIX = "suffix"
    WORDS = "words"


@dataclass(frozen=True, slots=True, kw_only=True)
class Alias:
    """``metric`` is the registry's name. ``note`` says where the trainer's definition differs."""

    metric: str
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """A trainer's name with the registry's."""

    metric: str
    match: Match
    note: str = ""


_CLAMPED = "this trainer clamps each token's estimate at 10"
_OWN_TRUNCATION = "by this trainer's own definition of a cut completion"
_ACTIVE_CLIP = "this trainer may count a token only where the clipped term is the loss"
_AS_CORRECTED = "by token or by sequence, capped or masked, as this trainer corrects"
_SIGNED = "this trainer logs the signed mean of -log r, which may be negative"

_NAMES: dict[str, tuple[str, ...]] = {
    "policy.loss": ("loss", "train/loss", "policy_loss", "actor/pg_loss", "train/pg_loss", "loss/policy_avg"),
    "policy.entropy": (
        "entropy",
        "actor/entropy",
        "actor/entropy_loss",
        "train/entropy_loss",
        "entropy_loss",
        "policy/entropy_avg",
    ),
    "policy.learning_rate": ("learning_rate", "lr", "actor/lr", "actor_lr", "train/lr-pg_0", "learning rate"),
    "gradient.norm": ("grad_norm", "actor/grad_norm", "train/grad_norm", "actor_grad_norm", "grad norm"),
    "kl.k3": ("kl", "grpo_loss/kl_divergence_mean"),
    "kl.capped": ("actor/kl_loss", "train/kl_loss", "kl_loss"),
    "kl.k1": ("logprobs_diff",),
    "kl.coef": ("actor/kl_coef", "critic/kl_coeff", "kl_ctl", "objective/kl_coef"),
    "ratio.approx_kl": ("actor/ppo_kl", "ppo_kl", "train/ppo_kl", "policy/approxkl_avg"),
    "ratio.clip_low_share": ("clip_ratio/low_mean",),
    "ratio.clip_high_share": ("clip_ratio/high_mean",),
    "ratio.clip_share": (
        "clip_ratio/region_mean",
        "clip_ratio",
        "actor/pg_clipfrac",
        "train/pg_clipfrac",
        "ppo_clip_ratio",
        "policy/clipfrac_avg",
    ),
    "correction.weight_mean": (
        "sampling/importance_sampling_ratio/mean",
        "rollout_corr/rollout_is_mean",
        "actor/rollout_corr/rollout_is_mean",
        "mismatch/rollout_is_mean",
        "rollout_correction/is_weight_mean",
        "train/sampling_importance_ratio",
        "sampling_importance_ratio",
        "train/tis",
    ),
    "critic.explained_variance": ("critic/vf_explained_var", "train/explained_variance", "explained_variance"),
    "critic.value_loss": ("critic/vf_loss", "loss/value_avg", "critic_loss", "train/value_loss", "value_loss"),
    "critic.gradient_norm": ("critic/grad_norm", "critic_grad_norm"),
    "critic.clip_share": ("critic/vf_clipfrac", "val/clipfrac_avg", "train/value_clipfrac"),
    "ratio.rollout_logp_diff": (
        "sampling/sampling_logp_difference/mean",
        "train/train_rollout_logprob_abs_diff",
        "train_rollout_logprob_abs_diff",
    ),
    "ratio.rollout_prob_diff": ("training/rollout_probs_diff_mean",),
    "reward.mean": (
        "reward",
        "critic/score/mean",
        "rollout/raw_reward",
        "rollout/reward_mean",
        "train/reward",
        "objective/scores",
    ),
    "reward.std": ("reward_std",),
    "reward.min": ("critic/score/min",),
    "reward.max": ("critic/score/max",),
    "reward.group_std": ("group_reward_std",),
    "reward.zero_std_groups": ("frac_reward_zero_std",),
    "length.mean": (
        "completions/mean_length",
        "completion_length",
        "response_length/mean",
        "response_length",
        "rollout/response_length_mean",
        "rollout/response_len/mean",
        "rollout/response_lengths",
    ),
    "length.min": ("completions/min_length", "response_length/min"),
    "length.max": ("completions/max_length", "response_length/max"),
    "length.truncation_rate": (
        "completions/clipped_ratio",
        "response_length/clip_ratio",
        "rollout/truncated_rate",
        "rollout/truncated_ratio",
        "rollout/truncated",
        "truncated",
        "response_clip_ratio",
    ),
    "progress.tokens": ("num_tokens",),
    "progress.epoch": ("epoch", "training/epoch"),
    "progress.step_time": ("step_time", "perf/time_per_step", "timing_s/step", "timing/step_total"),
}
_NOTES = {
    "kl.capped": _CLAMPED,
    "ratio.approx_kl": _SIGNED,
    "ratio.clip_share": _ACTIVE_CLIP,
    "correction.weight_mean": _AS_CORRECTED,
    "length.truncation_rate": _OWN_TRUNCATION,
}

ALIASES: dict[str, Alias] = {
    name: Alias(metric=metric, note=_NOTES.get(metric, "")) for metric, names in _NAMES.items() for name in names
}

_OUTER = re.compile(r"^(?:train|trainer|metrics|global|actor_rollout_ref)/")
_NO_WORD = re.compile(r"[^a-z0-9]+")
_FILLERS = frozenset({"training", "train", "mean", "avg", "average"})


def resolve(name: str) -> Resolved | None:
    """The registry's name for a trainer's, or None; a name of the registry stays itself."""
    if name in BY_NAME:
        return None
    for candidate, match in ((name, Match.EXACT), (bare(name), Match.SUFFIX)):
        alias = ALIASES.get(candidate)
        if alias is not None:
            return Resolved(metric=alias.metric, match=match, note=alias.note)
    alias = _BY_WORDS.get(_words(name))
    return Resolved(metric=alias.metric, match=Match.WORDS, note=alias.note) if alias is not None else None


def bare(name: str) -> str:
    """A name without the outermost prefix that loggers put before all of a trainer's names."""
    return _OUTER.sub("", name)


def _words(name: str) -> str:
    return " ".join(word for word in _NO_WORD.split(name.lower()) if word and word not in _FILLERS)


# shorter names first: "reward" and not "train/reward" says what the word alone means
_BY_WORDS: dict[str, Alias] = {}
for _name in sorted(ALIASES, key=len):
    _BY_WORDS.setdefault(_words(_name), ALIASES[_name])
