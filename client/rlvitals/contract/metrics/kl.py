"""KL to the reference, d = ref - logp, under the loss mask."""

from __future__ import annotations

from rlvitals.contract.metrics.metric import Merge, Metric, Worse

KL: tuple[Metric, ...] = (
    Metric(
        name="kl.k1",
        unit="nat",
        merge=Merge.TALLY,
        worse=Worse.NEITHER,
        meaning="Mean of -d: the unbiased KL estimate, may be negative.",
        formula="Schulman 2020",
        shape="(B, T) log-probs",
    ),
    Metric(
        name="kl.k2",
        unit="nat",
        merge=Merge.TALLY,
        worse=Worse.UP,
        meaning="Mean of d*d/2.",
        formula="Schulman 2020",
        shape="(B, T) log-probs",
    ),
    Metric(
        name="kl.k3",
        unit="nat",
        merge=Merge.TALLY,
        worse=Worse.UP,
        meaning="Mean of exp(d)-1-d; one token can own it.",
        formula="Schulman 2020",
        shape="(B, T) log-probs",
    ),
    Metric(
        name="kl.capped",
        unit="nat",
        merge=Merge.TALLY,
        worse=Worse.UP,
        meaning="Mean of min(k3, 10): the only one fit to feed a controller.",
        formula="signals 1.2",
        shape="(B, T) log-probs",
    ),
    Metric(
        name="kl.coef",
        unit="1",
        merge=Merge.LAST,
        worse=Worse.NEITHER,
        meaning="KL coefficient in force at this step, read from the trainer.",
        formula="trainer",
        shape="(B, T) log-probs",
    ),
    Metric(
        name="kl.grad_norm",
        unit="1",
        merge=Merge.TALLY,
        worse=Worse.UP,
        meaning="L2 norm over log-probs of the KL term's gradient as the loss weighs it, coefficient included.",
        formula="coef * sqrt(sum (w k')^2), signals 1.2",
        shape="(B, T) log-probs",
    ),
    Metric(
        name="kl.grad_l2",
        unit="1",
        merge=Merge.TALLY,
        worse=Worse.UP,
        meaning=(
            "L2 norm of the estimator's derivative with weight 1, from raw unclamped log-probs (grows "
            "with sqrt(N))."
        ),
        formula="sqrt(sum k'^2)",
        shape="(B, T) log-probs",
    ),
    Metric(
        name="kl.grad_rms",
        unit="1",
        merge=Merge.TALLY,
        worse=Worse.UP,
        meaning="kl.grad_l2 / sqrt(N): independent of the batch's size.",
        formula="signals 1.2",
        shape="(B, T) log-probs",
    ),
    Metric(
        name="kl.grad_max",
        unit="1",
        merge=Merge.MAX,
        worse=Worse.UP,
        meaning="Largest |k'| of one token, with its id.",
        formula="max |k'|",
        shape="(B, T) log-probs",
    ),
    Metric(
        name="kl.grad_top_id_share",
        unit="1",
        merge=Merge.TALLY,
        worse=Worse.UP,
        meaning=(
            "Largest share of sum k'^2 that one token id owns: near 1 is the fingerprint of a forced, "
            "unmasked token."
        ),
        formula="signals 1.2",
        shape="(B, T) log-probs",
    ),
    Metric(
        name="kl.pull_ratio",
        unit="1",
        merge=Merge.TALLY,
        worse=Worse.UP,
        meaning="KL pull over policy pull at log-prob level; above 1 the update mostly returns to the reference.",
        formula="coef |w k'| / |w A r|, signals 1.2",
        shape="(B, T) log-probs",
    ),
    Metric(
        name="kl.clamped_share",
        unit="1",
        merge=Merge.TALLY,
        worse=Worse.UP,
        meaning="Share of tokens with k3 > 10, where clamping trainers exert no pull.",
        formula="signals 1.2",
        shape="(B, T) log-probs",
    ),
)
