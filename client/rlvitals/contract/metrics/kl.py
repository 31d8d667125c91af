"""KL to the reference, d = ref - logp, under the loss mask."""

from __future__ import annotations

from rlvitals.contract.metrics.metric import Merge, Metric, Worse

SHAPE = "log-probs, reference log-probs and loss mask (B, T)"
WEIGHED = f"{SHAPE}; the loss's token weights w, which broadcast to (B, T); the coefficient"
EMPTY = (
    "Missing where no token under the mask has two finite log-probs (-Inf and NaN are left out and counted "
    "by numerics.nonfinite_logprobs), and where there is no reference."
)
OVERFLOW = f"{EMPTY} +Inf where exp(d) overflows a double (d > 709.8)."
SCHULMAN = "Schulman 2020, Approximating KL Divergence"
VERL = "verl core_algos.kl_penalty"

KL: tuple[Metric, ...] = (
    Metric(
        name="kl.k1",
        unit="nat",
        merge=Merge.TALLY,
        worse=Worse.NEITHER,
        meaning="Mean of -d: the unbiased KL estimate, may be negative.",
        formula="(sum -d) / N",
        shape=SHAPE,
        edge=EMPTY,
        source=SCHULMAN,
    ),
    Metric(
        name="kl.k2",
        unit="nat",
        merge=Merge.TALLY,
        worse=Worse.UP,
        meaning="Mean of d*d/2: as a loss, its gradient is that of the reverse KL.",
        formula="(sum d*d/2) / N",
        shape=SHAPE,
        edge=EMPTY,
        source=SCHULMAN,
    ),
    Metric(
        name="kl.k3",
        unit="nat",
        merge=Merge.TALLY,
        worse=Worse.UP,
        meaning="Mean of exp(d)-1-d; one token can own it.",
        formula="(sum exp(d)-1-d) / N",
        shape=SHAPE,
        edge=OVERFLOW,
        source=SCHULMAN,
    ),
    Metric(
        name="kl.abs",
        unit="nat",
        merge=Merge.TALLY,
        worse=Worse.UP,
        meaning="Mean of |d|: how far the log-probs are from the reference's, whatever the side.",
        formula="(sum |d|) / N",
        shape=SHAPE,
        edge=EMPTY,
        source=VERL,
    ),
    Metric(
        name="kl.capped",
        unit="nat",
        merge=Merge.TALLY,
        worse=Worse.UP,
        meaning=(
            "Mean of min(k3, 10), the value of low_var_kl in verl, OpenRLHF and slime: the only one fit to feed "
            "a controller."
        ),
        formula="(sum min(exp(d)-1-d, 10)) / N",
        shape=SHAPE,
        edge=f"{EMPTY} Never above 10: an overflowing token counts as 10.",
        source=VERL,
    ),
    Metric(
        name="kl.in_loss",
        unit="nat",
        merge=Merge.TALLY,
        worse=Worse.UP,
        meaning="Mean of the estimator that this trainer's loss pulls with, clamped as the trainer clamps it.",
        formula="(sum k(d)) / N, k(d) clamped to [-10, 10] where the trainer clamps",
        shape=SHAPE,
        edge=f"{OVERFLOW} At most 10 a token where the trainer clamps.",
        source="the trainer's own estimator",
    ),
    Metric(
        name="kl.k1_max",
        unit="nat",
        merge=Merge.MAX,
        worse=Worse.NEITHER,
        meaning="Largest -d of one token, with its id: where the policy is farthest above the reference.",
        formula="max -d",
        shape=SHAPE,
        edge=EMPTY,
        source=SCHULMAN,
    ),
    Metric(
        name="kl.k2_max",
        unit="nat",
        merge=Merge.MAX,
        worse=Worse.UP,
        meaning="Largest d*d/2 of one token, with its id.",
        formula="max d*d/2",
        shape=SHAPE,
        edge=EMPTY,
        source=SCHULMAN,
    ),
    Metric(
        name="kl.k3_max",
        unit="nat",
        merge=Merge.MAX,
        worse=Worse.UP,
        meaning="Largest exp(d)-1-d of one token, with its id: the token that can own the mean.",
        formula="max exp(d)-1-d",
        shape=SHAPE,
        edge=OVERFLOW,
        source=SCHULMAN,
    ),
    Metric(
        name="kl.abs_max",
        unit="nat",
        merge=Merge.MAX,
        worse=Worse.UP,
        meaning="Largest |d| of one token, with its id.",
        formula="max |d|",
        shape=SHAPE,
        edge=EMPTY,
        source=VERL,
    ),
    Metric(
        name="kl.coef",
        unit="1",
        merge=Merge.LAST,
        worse=Worse.NEITHER,
        meaning="KL coefficient in force at this step, read from the trainer.",
        formula="the trainer's own",
        shape="a scalar",
        edge="Missing where the trainer has none; 0 where it has switched the KL term off.",
        source="the trainer",
    ),
    Metric(
        name="kl.grad_norm",
        unit="1",
        merge=Merge.TALLY,
        worse=Worse.UP,
        meaning=(
            "L2 norm over log-probs of the gradient that the KL term really has in the loss: weights, clamps and "
            "coefficient included."
        ),
        formula="coef * sqrt(sum (w k')^2) / ranks, k' = 0 where a clamp lets go",
        shape=WEIGHED,
        edge=(
            f"{OVERFLOW} NaN where exp(d) overflows the log-probs' float type in front of a clamp. 0 where the "
            "coefficient or the weights are 0."
        ),
        source="closed form, equal to autograd",
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
        shape=SHAPE,
        edge=OVERFLOW,
        source="closed form, equal to autograd",
    ),
    Metric(
        name="kl.grad_rms",
        unit="1",
        merge=Merge.TALLY,
        worse=Worse.UP,
        meaning="kl.grad_l2 / sqrt(N): independent of the batch's size.",
        formula="sqrt((sum k'^2) / N)",
        shape=SHAPE,
        edge=OVERFLOW,
        source="closed form, equal to autograd",
    ),
    Metric(
        name="kl.grad_max",
        unit="1",
        merge=Merge.MAX,
        worse=Worse.UP,
        meaning="Largest |k'| of one token, unclamped, with its id.",
        formula="max |k'|",
        shape=SHAPE,
        edge=f"{OVERFLOW} No token is named where all pull alike (k1, abs) or none does.",
        source="closed form, equal to autograd",
    ),
    Metric(
        name="kl.grad_top_id_share",
        unit="1",
        merge=Merge.TALLY,
        worse=Worse.UP,
        meaning=(
            "Largest share of sum k'^2, unclamped, that one token id owns: near 1 is the fingerprint of a forced "
            "token that the loss mask does not cover."
        ),
        formula="max over ids of (sum of k'^2 of that id) / (sum k'^2)",
        shape=f"{SHAPE}; token ids (B, T)",
        edge=(
            f"{EMPTY} Also missing where no token pulls. Ids whose sum overflows share it equally. From a GPU, or "
            "merged over ranks, a lower bound where more ids pull than are sent."
        ),
    ),
    Metric(
        name="kl.pull_ratio",
        unit="1",
        merge=Merge.TALLY,
        worse=Worse.UP,
        meaning="KL pull over policy pull at log-prob level; above 1 the update mostly returns to the reference.",
        formula="kl.grad_norm / sqrt(sum (w A r)^2), r = 0 where the clip holds the token",
        shape=f"{WEIGHED}; advantages (B,) or (B, T)",
        edge=(
            f"{EMPTY} Also missing where all advantages are zero or clipped, the policy pull overflows, the KL "
            "pull is NaN, or this loss's pull has no closed form: a ratio of each sequence, a filter of tokens, "
            "sapo and vespo off policy."
        ),
    ),
    Metric(
        name="kl.share_of_gradient",
        unit="1",
        merge=Merge.TALLY,
        worse=Worse.UP,
        meaning="KL pull as a share of KL pull and policy pull together: 0 none of the update, 1 all of it.",
        formula="kl.grad_norm / (kl.grad_norm + sqrt(sum (w A r)^2)), r = 0 where the clip holds the token",
        shape=f"{WEIGHED}; advantages (B,) or (B, T)",
        edge=(
            f"{EMPTY} 1 where all advantages are zero or clipped; missing where neither pulls or either is not "
            "finite, and where kl.pull_ratio has no closed form."
        ),
    ),
    Metric(
        name="kl.clamped_share",
        unit="1",
        merge=Merge.TALLY,
        worse=Worse.UP,
        meaning="Share of tokens with k3 > 10 (d above 2.61 or below -11), where clamping trainers exert no pull.",
        formula="(tokens with exp(d)-1-d > 10) / N",
        shape=SHAPE,
        edge=EMPTY,
        source=VERL,
    ),
    Metric(
        name="kl.dead_zone_share",
        unit="1",
        merge=Merge.TALLY,
        worse=Worse.UP,
        meaning=(
            "Share of tokens on which a clamp of this trainer's loss has set the KL gradient to 0: they fall "
            "freely, however far they are from the reference."
        ),
        formula="(tokens with |k(d)| > 10 under a clamp, less kl.nan_gradient_tokens) / N",
        shape=SHAPE,
        edge=f"{EMPTY} 0 where the loss has no clamp, and for k3+, whose gradient passes by the clamp.",
        source=VERL,
    ),
    Metric(
        name="kl.overflow_margin",
        unit="nat",
        merge=Merge.MIN,
        worse=Worse.DOWN,
        meaning=(
            "Distance of the largest d, with its token, to where exp(d) overflows in the log-probs' own float "
            "type; below 0 it has."
        ),
        formula="log(largest number of the type) - max d; 88.7 in fp32 and bf16, 11.1 in fp16, 709.8 in fp64",
        shape=SHAPE,
        edge=(
            f"{EMPTY} The type is what log-probs and reference promote to; a trainer that computes in another has "
            "another margin."
        ),
    ),
    Metric(
        name="kl.nan_gradient_tokens",
        unit="{token}",
        merge=Merge.SUM,
        worse=Worse.UP,
        meaning=(
            "Tokens whose exp(d) overflows in front of a clamp: the loss stays finite, its gradient is NaN. The "
            "one shown has the largest d."
        ),
        formula="tokens with d > log(largest finite number of the type), where the loss clamps after exp only",
        shape=SHAPE,
        edge=f"{EMPTY} 0 where the loss has no clamp or clamps before exp.",
        source="verl-project/verl#891",
    ),
    Metric(
        name="kl.parameter_grad_norm",
        unit="1",
        merge=Merge.MAX,
        worse=Worse.UP,
        meaning="L2 norm of the KL term's gradient by the parameters; costs a backward pass, so every n-th step.",
        formula="sqrt(sum over parameters of (d KL term / d parameter)^2)",
        shape="the model's parameters and a closure that computes the KL term",
        edge=(
            "Off unless asked for. Missing with a reason on the steps between, and where parameters are sharded "
            "(DeepSpeed ZeRO-3, FSDP). NaN and Inf are told as they are."
        ),
        source="autograd",
    ),
)
