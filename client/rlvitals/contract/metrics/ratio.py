"""Importance ratios r = exp(logp - old) under the loss mask; missing where the trainer has no old log-probs."""

from __future__ import annotations

from rlvitals.contract.metrics.metric import Merge, Metric, Worse

RATIO: tuple[Metric, ...] = (
    Metric(
        name="ratio.max",
        unit="1",
        merge=Merge.MAX,
        worse=Worse.UP,
        meaning="Largest importance ratio of one token, with its id.",
        formula="signals 1.3",
        shape="(B, T) log-probs",
    ),
    Metric(
        name="ratio.min",
        unit="1",
        merge=Merge.MIN,
        worse=Worse.DOWN,
        meaning="Least importance ratio of one token, with its id.",
        formula="signals 1.3",
        shape="(B, T) log-probs",
    ),
    Metric(
        name="ratio.log_abs_p999",
        unit="nat",
        merge=Merge.TALLY,
        worse=Worse.UP,
        meaning="99.9 % quantile of |log ratio| from a log-binned sketch.",
        formula="signals 1.3",
        shape="(B, T) log-probs",
    ),
    Metric(
        name="ratio.ess",
        unit="1",
        merge=Merge.TALLY,
        worse=Worse.DOWN,
        meaning="Effective sample size (sum r)^2 / (N sum r^2), in (0, 1].",
        formula="signals 1.3",
        shape="(B, T) log-probs",
    ),
    Metric(
        name="ratio.clip_low_share",
        unit="1",
        merge=Merge.TALLY,
        worse=Worse.UP,
        meaning="Share of tokens clipped below (advantage < 0).",
        formula="signals 1.3",
        shape="(B, T) log-probs",
    ),
    Metric(
        name="ratio.clip_high_share",
        unit="1",
        merge=Merge.TALLY,
        worse=Worse.UP,
        meaning="Share of tokens clipped above (advantage > 0).",
        formula="signals 1.3",
        shape="(B, T) log-probs",
    ),
    Metric(
        name="ratio.approx_kl",
        unit="nat",
        merge=Merge.TALLY,
        worse=Worse.UP,
        meaning="Mean of r - 1 - log r against the rollout policy.",
        formula="signals 1.3",
        shape="(B, T) log-probs",
    ),
    Metric(
        name="ratio.rollout_logp_diff",
        unit="nat",
        merge=Merge.TALLY,
        worse=Worse.UP,
        meaning="Mean |trainer - sampler| log-prob for the same weights.",
        formula="signals 1.4",
        shape="(B, T) log-probs",
    ),
    Metric(
        name="ratio.rollout_prob_diff",
        unit="1",
        merge=Merge.TALLY,
        worse=Worse.UP,
        meaning="Mean |trainer - sampler| probability for the same weights, as verl logs it.",
        formula="mean |exp(logp) - exp(rollout)|",
        shape="(B, T) log-probs",
    ),
)
