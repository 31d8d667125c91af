"""THE registry: every metric that RL Vitals itself knows, with unit, merge rule, and which way is bad.

Docs, chart panels and rule checks are derived from this table. Names that are not here are the user's own and
are stored and drawn all the same. ``source`` names the formula (signals = the field's definitions as listed in
docs/metrics.md) or the trainer's own logged value.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Family(str, Enum):
    """One block of charts on the run page, in the order of looking."""

    TEXT = "text"
    LENGTH = "length"
    REWARD = "reward"
    KL = "kl"
    RATIO = "ratio"
    POLICY = "policy"
    GRADIENT = "gradient"
    NUMERICS = "numerics"
    PROGRESS = "progress"
    SELF = "rlvitals"


class Merge(str, Enum):
    """How values of one step from several writers combine. ``TALLY`` ratios are finished from merged Tallies."""

    SUM = "sum"
    MIN = "min"
    MAX = "max"
    LAST = "last"
    TALLY = "tally"


class Worse(str, Enum):
    UP = "up"
    DOWN = "down"
    BOTH = "both"
    NEITHER = "neither"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """``unit`` is UCUM-like: ``1`` a share or plain ratio, ``nat``, ``s``, ``{token}``, ``{completion}``."""

    name: str
    unit: str
    merge: Merge
    worse: Worse
    meaning: str
    source: str

    @property
    def family(self) -> Family:
        return Family(self.name.split(".", 1)[0])


def _m(name: str, unit: str, merge: Merge, worse: Worse, meaning: str, source: str) -> Metric:
    return Metric(name=name, unit=unit, merge=merge, worse=worse, meaning=meaning, source=source)


_T, _SUM, _MIN, _MAX, _LAST = Merge.TALLY, Merge.SUM, Merge.MIN, Merge.MAX, Merge.LAST
_UP, _DOWN, _BOTH, _NO = Worse.UP, Worse.DOWN, Worse.BOTH, Worse.NEITHER

METRICS: tuple[Metric, ...] = (
    # text: from token ids, never from decoded strings; N = tokens that the policy chose
    _m(
        "text.invalid_utf8_count",
        "{sequence}",
        _SUM,
        _UP,
        "Ill-formed UTF-8 subparts in the byte stream of the ids; a character cut by the length limit is none.",
        "UTF-8 automaton over token bytes",
    ),
    _m(
        "text.invalid_utf8_per_1k",
        "{sequence}/1000",
        _T,
        _UP,
        "Ill-formed UTF-8 subparts per 1,000 tokens; exactly 0 on healthy text.",
        "1000 * errors / N",
    ),
    _m(
        "text.invalid_utf8_completions",
        "1",
        _T,
        _UP,
        "Share of completions with ill-formed UTF-8.",
        "completions with errors / completions",
    ),
    _m(
        "text.replacement_char_count",
        "{char}",
        _SUM,
        _UP,
        "U+FFFD by the canonical count (one per maximal ill-formed subpart) plus those that the model wrote.",
        "errors + literals",
    ),
    _m(
        "text.literal_replacement_per_1k",
        "{char}/1000",
        _T,
        _UP,
        "Well-formed U+FFFD characters that the model itself wrote, per 1,000 tokens.",
        "1000 * literals / N",
    ),
    _m(
        "text.cut_char_completions",
        "1",
        _T,
        _NO,
        "Share of completions that end inside a character, as a length limit does; benign.",
        "tails / completions",
    ),
    _m(
        "text.never_trained_rate",
        "1",
        _T,
        _UP,
        "Share of ids that no training ever touched: without a token, out of range, or reserved.",
        "(unassigned + out of range + reserved) / N",
    ),
    _m("text.out_of_range_count", "{token}", _SUM, _UP, "Ids below 0 or beyond the embedding rows.", "count"),
    _m(
        "text.byte_piece_ratio",
        "1",
        _T,
        _NO,
        "Share of tokens that are bytes or fragments of characters; high in healthy emoji and rare scripts.",
        "classes byte_high, fragment / N",
    ),
    _m(
        "text.byte_fallback_ratio",
        "1",
        _T,
        _NO,
        "The popular name: explicit high-byte tokens where the tokenizer has byte fallback, else fragments.",
        "per tokenizer family",
    ),
    _m(
        "text.top_id_share",
        "1",
        _T,
        _UP,
        "Share of the most frequent id among all sampled tokens.",
        "max count / N",
    ),
    _m("text.id0_share", "1", _T, _UP, 'Share of id 0; "!!!!" after NaN logits is id 0.', "count(id 0) / N"),
    # length
    _m(
        "length.mean",
        "{token}",
        _T,
        _BOTH,
        "Mean completion length, tokens chosen by the policy.",
        "sum / completions",
    ),
    _m("length.min", "{token}", _MIN, _NO, "Shortest completion.", "min"),
    _m("length.max", "{token}", _MAX, _NO, "Longest completion.", "max"),
    _m(
        "length.truncation_rate",
        "1",
        _T,
        _UP,
        "Share of completions cut by the limit: last id no stop id and length at the cap.",
        "signals 1.7",
    ),
    _m("length.stop_rate", "1", _T, _DOWN, "Share of completions that end in a stop id.", "signals 1.7"),
    _m(
        "length.empty_rate",
        "1",
        _T,
        _UP,
        "Share of completions without a token beside the stop id.",
        "count / completions",
    ),
    _m("length.completions", "{completion}", _SUM, _NO, "Completions seen in this step.", "count"),
    # reward, groups, advantages
    _m("reward.mean", "1", _T, _DOWN, "Mean of the finite rewards.", "sum / count"),
    _m("reward.std", "1", _T, _NO, "Standard deviation of the finite rewards over the batch.", "moments"),
    _m("reward.min", "1", _MIN, _NO, "Least finite reward.", "min"),
    _m("reward.max", "1", _MAX, _NO, "Greatest finite reward.", "max"),
    _m("reward.group_std", "1", _T, _DOWN, "Mean standard deviation within groups of two or more.", "signals 1.6"),
    _m(
        "reward.zero_std_groups",
        "1",
        _T,
        _UP,
        "Share of groups of two or more in which all rewards are equal: no advantage, no gradient.",
        "signals 1.6",
    ),
    _m(
        "reward.advantage_abs_max",
        "1",
        _MAX,
        _UP,
        "Largest |advantage|; group z-scores cannot exceed (G-1)/sqrt(G).",
        "signals 1.6",
    ),
    # KL to the reference, d = ref - logp, under the loss mask
    _m("kl.k1", "nat", _T, _NO, "Mean of -d: the unbiased KL estimate, may be negative.", "Schulman 2020"),
    _m("kl.k2", "nat", _T, _UP, "Mean of d*d/2.", "Schulman 2020"),
    _m("kl.k3", "nat", _T, _UP, "Mean of exp(d)-1-d; one token can own it.", "Schulman 2020"),
    _m("kl.capped", "nat", _T, _UP, "Mean of min(k3, 10): the only one fit to feed a controller.", "signals 1.2"),
    _m("kl.coef", "1", _LAST, _NO, "KL coefficient in force at this step, read from the trainer.", "trainer"),
    _m(
        "kl.grad_norm",
        "1",
        _T,
        _UP,
        "L2 norm over log-probs of the KL term's gradient as the loss weighs it, coefficient included.",
        "coef * sqrt(sum (w k')^2), signals 1.2",
    ),
    _m(
        "kl.grad_l2",
        "1",
        _T,
        _UP,
        "L2 norm of the estimator's derivative with weight 1, from raw unclamped log-probs (grows with sqrt(N)).",
        "sqrt(sum k'^2)",
    ),
    _m("kl.grad_rms", "1", _T, _UP, "kl.grad_l2 / sqrt(N): independent of the batch's size.", "signals 1.2"),
    _m("kl.grad_max", "1", _MAX, _UP, "Largest |k'| of one token, with its id.", "max |k'|"),
    _m(
        "kl.grad_top_id_share",
        "1",
        _T,
        _UP,
        "Largest share of sum k'^2 that one token id owns: near 1 is the fingerprint of a forced, unmasked token.",
        "signals 1.2",
    ),
    _m(
        "kl.pull_ratio",
        "1",
        _T,
        _UP,
        "KL pull over policy pull at log-prob level; above 1 the update mostly returns to the reference.",
        "coef |w k'| / |w A r|, signals 1.2",
    ),
    _m(
        "kl.clamped_share",
        "1",
        _T,
        _UP,
        "Share of tokens with k3 > 10, where clamping trainers exert no pull.",
        "signals 1.2",
    ),
    # importance ratio r = exp(logp - old), under the loss mask; missing where the trainer has no old log-probs
    _m("ratio.max", "1", _MAX, _UP, "Largest importance ratio of one token, with its id.", "signals 1.3"),
    _m("ratio.min", "1", _MIN, _DOWN, "Least importance ratio of one token, with its id.", "signals 1.3"),
    _m(
        "ratio.log_abs_p999",
        "nat",
        _T,
        _UP,
        "99.9 % quantile of |log ratio| from a log-binned sketch.",
        "signals 1.3",
    ),
    _m("ratio.ess", "1", _T, _DOWN, "Effective sample size (sum r)^2 / (N sum r^2), in (0, 1].", "signals 1.3"),
    _m("ratio.clip_low_share", "1", _T, _UP, "Share of tokens clipped below (advantage < 0).", "signals 1.3"),
    _m("ratio.clip_high_share", "1", _T, _UP, "Share of tokens clipped above (advantage > 0).", "signals 1.3"),
    _m("ratio.approx_kl", "nat", _T, _UP, "Mean of r - 1 - log r against the rollout policy.", "signals 1.3"),
    _m(
        "ratio.rollout_logp_diff",
        "nat",
        _T,
        _UP,
        "Mean |trainer - sampler| log-prob for the same weights.",
        "signals 1.4",
    ),
    _m(
        "ratio.rollout_prob_diff",
        "1",
        _T,
        _UP,
        "Mean |trainer - sampler| probability for the same weights, as verl logs it.",
        "mean |exp(logp) - exp(rollout)|",
    ),
    # policy
    _m("policy.loss", "1", _LAST, _NO, "The loss as computed, before any log filter hides a NaN.", "trainer"),
    _m("policy.entropy", "nat", _LAST, _BOTH, "Mean entropy of the policy's next-token distribution.", "trainer"),
    _m("policy.learning_rate", "1", _LAST, _NO, "Learning rate in force.", "trainer"),
    _m("policy.loss_tokens", "{token}", _SUM, _DOWN, "Tokens under the loss mask.", "N"),
    # gradient
    _m("gradient.norm", "1", _LAST, _UP, "Global gradient norm before clipping, every step.", "trainer"),
    # numerics: counts of NaN, +Inf and -Inf; zero is healthy
    _m(
        "numerics.nonfinite",
        "{value}",
        _SUM,
        _UP,
        "All non-finite values found this step in loss, gradient norm, log-probs under the mask and advantages.",
        "sum of the census",
    ),
    _m("numerics.nonfinite_loss", "{value}", _SUM, _UP, "Non-finite micro-batch losses.", "census"),
    _m("numerics.nonfinite_gradient", "{value}", _SUM, _UP, "Non-finite gradient norms.", "census"),
    _m(
        "numerics.nonfinite_logprobs",
        "{value}",
        _SUM,
        _UP,
        "Non-finite policy, old or reference log-probs under the loss mask.",
        "census",
    ),
    _m("numerics.nonfinite_advantages", "{value}", _SUM, _UP, "Non-finite advantages.", "census"),
    _m(
        "numerics.nonfinite_rewards",
        "{value}",
        _SUM,
        _UP,
        "Rewards that are NaN, infinite or None in every reward function.",
        "census",
    ),
    _m(
        "numerics.nonfinite_padding",
        "{value}",
        _SUM,
        _NO,
        "Non-finite log-probs outside the loss mask: a notice, not an alert.",
        "census",
    ),
    # progress
    _m("progress.step_time", "s", _MAX, _UP, "Wall time of the step.", "clock"),
    _m(
        "progress.tokens", "{token}", _LAST, _NO, "Tokens seen since the start, by the trainer's count.", "trainer"
    ),
    _m("progress.epoch", "1", _LAST, _NO, "Epoch by the trainer's count.", "trainer"),
    # our own cost and losses
    _m(
        "rlvitals.overhead",
        "s",
        _SUM,
        _UP,
        "Time that the monitor spent in the training thread in this step.",
        "clock",
    ),
    _m("rlvitals.dropped", "{record}", _LAST, _UP, "Records lost so far, for every reason together.", "client"),
    _m(
        "rlvitals.errors",
        "{error}",
        _LAST,
        _UP,
        "Errors of ours that the guard kept from the trainer so far.",
        "client",
    ),
    _m("rlvitals.spool_bytes", "By", _LAST, _UP, "Bytes on disk that the service has not acknowledged.", "client"),
)

BY_NAME: dict[str, Metric] = {metric.name: metric for metric in METRICS}
if len(BY_NAME) != len(METRICS):
    raise ValueError("a metric is registered twice")


def find(name: str) -> Metric | None:
    """The registered metric, or None for a name of the user's own."""
    return BY_NAME.get(name)
