"""Gradients of the parameters, and what the optimizer made of them."""

from __future__ import annotations

from rlvitals.contract.metrics.metric import Merge, Metric, Worse

_GRADIENTS = "the gradient of each parameter, unscaled, before clipping"
_WEIGHTS = "4,096 neighbouring weights of each of 16 parameters, before and after the optimizer's step"
_NO_GRADIENT = "missing where no parameter has a gradient"

GRADIENT: tuple[Metric, ...] = (
    Metric(
        name="gradient.norm",
        unit="1",
        merge=Merge.LAST,
        worse=Worse.UP,
        meaning="Global gradient norm before clipping, every step.",
        formula="sqrt(sum g^2), as the trainer's clipping returned it, else from the parameters",
        shape="a scalar, or the gradient of each parameter",
        edge="NaN and infinities are told as they are; missing where the trainer computed none",
        source="HF Trainer grad_norm, verl actor/grad_norm, slime train/grad_norm",
    ),
    Metric(
        name="gradient.nonfinite_parameters",
        unit="{parameter}",
        merge=Merge.SUM,
        worse=Worse.UP,
        meaning="Parameters whose gradient holds a NaN or an infinity; the first of them is named.",
        formula="count of parameters whose gradient norm is not finite, in the model's order",
        shape=_GRADIENTS,
        edge="on a GPU a norm beyond float32 (about 1e19 in one element) counts too; 0 without gradients",
    ),
    Metric(
        name="gradient.top_parameter_share",
        unit="1",
        merge=Merge.TALLY,
        worse=Worse.UP,
        meaning="Share of the squared gradient norm that one parameter owns, and which.",
        formula="max_p |g_p|^2 / sum_p |g_p|^2 over parameters with a finite gradient",
        shape=_GRADIENTS,
        edge=f"{_NO_GRADIENT}, and where all are zero",
    ),
    Metric(
        name="gradient.update_ratio",
        unit="1",
        merge=Merge.TALLY,
        worse=Worse.BOTH,
        meaning="How far the optimizer's step moved the weights, against their size.",
        formula="|w_after - w_before| / |w_before|",
        shape=_WEIGHTS,
        edge="missing where no finite weight was looked at or all of them were zero; 0 where nothing moved",
        source="about 1e-3 is usual in pre-training (Karpathy 2019), 1e-6 to 1e-5 in fine-tuning by RL",
    ),
    Metric(
        name="gradient.unchanged_share",
        unit="1",
        merge=Merge.TALLY,
        worse=Worse.UP,
        meaning="Share of weights that the step left as they were: updates too small for bfloat16 are lost.",
        formula="count(w_after = w_before) / weights",
        shape=_WEIGHTS,
        edge="missing where no finite weight was looked at",
    ),
    Metric(
        name="gradient.skipped_steps",
        unit="{step}",
        merge=Merge.SUM,
        worse=Worse.UP,
        meaning="Optimizer steps that left all weights unchanged: a non-finite gradient, or a rate of 0.",
        formula="steps with the same weights before and after, or in which the scaler found an infinity",
        shape=f"{_WEIGHTS}; a gradient scaler's scale or found_inf",
        edge="missing where neither is known",
        source="verl skips the step where the norm is not finite (verl-project/verl#1197); torch.amp.GradScaler",
    ),
    Metric(
        name="gradient.loss_scale",
        unit="1",
        merge=Merge.MIN,
        worse=Worse.DOWN,
        meaning="Loss scale of mixed-precision training; it halves at each overflow.",
        formula="the scaler's scale after the step",
        shape="a scalar",
        edge="missing without a gradient scaler (bfloat16, float32)",
        source="torch.amp.GradScaler",
    ),
)
