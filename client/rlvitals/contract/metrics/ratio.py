"""Importance ratios under the loss mask: new over old, trainer over sampler, policy over reference."""

from __future__ import annotations

from rlvitals.contract.metrics.metric import Merge, Metric, Worse

EMPTY = (
    "Missing where no token under the mask has both log-probs finite (-Inf and NaN are left out and counted by "
    "numerics.nonfinite_logprobs)."
)
WHERE = "Shown with token id, position and sample; the loss mask never hides it (masked = no)."


def _kind(prefix: str, ratio: str, shape: str, absent: str, source: str) -> tuple[Metric, ...]:
    """What is told of every ratio; ``absent`` says when a trainer has none."""
    edge = f"{EMPTY} {absent}"
    return (
        Metric(
            name=f"{prefix}max",
            unit="1",
            merge=Merge.MAX,
            worse=Worse.UP,
            meaning=f"Largest {ratio} of one token. {WHERE}",
            formula="max r",
            shape=shape,
            edge=f"{edge} +Inf where exp overflows a double.",
            source=source,
        ),
        Metric(
            name=f"{prefix}min",
            unit="1",
            merge=Merge.MIN,
            worse=Worse.DOWN,
            meaning=f"Least {ratio} of one token. {WHERE}",
            formula="min r",
            shape=shape,
            edge=f"{edge} 0 where exp underflows a double.",
            source=source,
        ),
        Metric(
            name=f"{prefix}log_abs_p999",
            unit="nat",
            merge=Merge.TALLY,
            worse=Worse.UP,
            meaning=f"99.9 % quantile of |log r|, r the {ratio}.",
            formula="upper edge of its bin of 96 log bins over [1e-4, 100), at most 16.4 % too high",
            shape=shape,
            edge=f"{edge} At most the largest |log r|; at most 1e-4 where nearly all are below that.",
        ),
        Metric(
            name=f"{prefix}ess",
            unit="1",
            merge=Merge.TALLY,
            worse=Worse.DOWN,
            meaning=f"Effective sample size of the {ratio} as a share of the tokens, in (0, 1].",
            formula="(sum r)^2 / (N sum r^2)",
            shape=shape,
            edge=f"{edge} 1 / N where one token outweighs all others.",
            source="Kish 1965",
        ),
        Metric(
            name=f"{prefix}beyond_count",
            unit="{token}",
            merge=Merge.SUM,
            worse=Worse.UP,
            meaning=f"Tokens whose {ratio} is beyond bounds, above 10 or below 1/10.",
            formula="tokens with |log r| > log 10",
            shape=shape,
            edge=edge,
        ),
    )


NEW = "log-probs, old log-probs and loss mask (B, T)"
SAMPLER = "the trainer's log-probs of the sampled weights, the sampler's own, and loss mask (B, T)"
REFERENCE = "log-probs, reference log-probs and loss mask (B, T)"
NO_OLD = "Missing where the trainer keeps no old log-probs: its ratio is 1 by construction, not by measurement."
NO_SAMPLER = "Missing where the sampling engine returns no log-probs."
NO_REFERENCE = "Missing where there are no reference log-probs."
SEQUENCES = "Missing for losses that clip one ratio per sequence."
CLIPS = f"{NEW}; advantages (B,) or (B, T)"

RATIO: tuple[Metric, ...] = (
    *_kind("ratio.", "importance ratio new/old", NEW, NO_OLD, "Schulman et al. 2017 (PPO)"),
    Metric(
        name="ratio.clip_low_share",
        unit="1",
        merge=Merge.TALLY,
        worse=Worse.UP,
        meaning="Share of tokens clipped below (advantage < 0).",
        formula="(tokens with r < 1 - eps_low and A < 0) / N",
        shape=CLIPS,
        edge=f"{EMPTY} {NO_OLD} {SEQUENCES} A NaN advantage clips nothing.",
        source="TRL clip_ratio/low_mean",
    ),
    Metric(
        name="ratio.clip_high_share",
        unit="1",
        merge=Merge.TALLY,
        worse=Worse.UP,
        meaning="Share of tokens clipped above (advantage > 0).",
        formula="(tokens with r > 1 + eps_high and A > 0) / N",
        shape=CLIPS,
        edge=f"{EMPTY} {NO_OLD} {SEQUENCES} A NaN advantage clips nothing.",
        source="TRL clip_ratio/high_mean",
    ),
    Metric(
        name="ratio.clip_share",
        unit="1",
        merge=Merge.TALLY,
        worse=Worse.UP,
        meaning="Share of tokens clipped on either side.",
        formula="clip_low_share + clip_high_share",
        shape=CLIPS,
        edge=f"{EMPTY} {NO_OLD} {SEQUENCES} A NaN advantage clips nothing.",
        source="TRL clip_ratio/region_mean, verl actor/pg_clipfrac, slime train/pg_clipfrac",
    ),
    Metric(
        name="ratio.approx_kl",
        unit="nat",
        merge=Merge.TALLY,
        worse=Worse.UP,
        meaning="KL between new and old policy, estimated without bias and never negative.",
        formula="(sum r - 1 - log r) / N",
        shape=NEW,
        edge=f"{EMPTY} {NO_OLD} +Inf where exp overflows a double.",
        source="Schulman 2020, Approximating KL Divergence",
    ),
    Metric(
        name="ratio.rollout_logp_diff",
        unit="nat",
        merge=Merge.TALLY,
        worse=Worse.UP,
        meaning="Mean |trainer - sampler| log-prob for the same weights.",
        formula="(sum |log r|) / N",
        shape=SAMPLER,
        edge=f"{EMPTY} {NO_SAMPLER} A sampler that renormalises (top-p, top-k, temperature) shifts every token.",
        source="TRL sampling/sampling_logp_difference/mean",
    ),
    Metric(
        name="ratio.rollout_prob_diff",
        unit="1",
        merge=Merge.TALLY,
        worse=Worse.UP,
        meaning="Mean |trainer - sampler| probability for the same weights.",
        formula="(sum |exp(logp) - exp(rollout)|) / N",
        shape=SAMPLER,
        edge=f"{EMPTY} {NO_SAMPLER}",
        source="verl training/rollout_probs_diff_mean",
    ),
    *_kind(
        "ratio.rollout_", "ratio trainer/sampler", SAMPLER, NO_SAMPLER, "TRL sampling/importance_sampling_ratio"
    ),
    Metric(
        name="ratio.rollout_approx_kl",
        unit="nat",
        merge=Merge.TALLY,
        worse=Worse.UP,
        meaning="KL between trainer and sampler for the same weights, estimated without bias and never negative.",
        formula="(sum r - 1 - log r) / N",
        shape=SAMPLER,
        edge=f"{EMPTY} {NO_SAMPLER} +Inf where exp overflows a double.",
        source="verl rollout_corr/k3_kl",
    ),
    *_kind("ratio.reference_", "ratio policy/reference", REFERENCE, NO_REFERENCE, "RL Vitals"),
)
