"""Importance correction between sampler and trainer: the weights that the trainer put on its gradient."""

from __future__ import annotations

from rlvitals.contract.metrics.metric import Merge, Metric, Worse

CORRECTION: tuple[Metric, ...] = (
    Metric(
        name="correction.weight_mean",
        unit="1",
        merge=Merge.LAST,
        worse=Worse.BOTH,
        meaning=(
            "Mean weight with which the trainer corrects for the sampler, after its cap. Near 1 the two agree; "
            "near 0 the gradient is scaled away, as a product over a long sequence does."
        ),
        formula="mean of min(cap, exp(log-prob of the trainer - of the sampler)), by token or by sequence",
        shape="a scalar of the trainer's own log",
        edge="missing where nothing is corrected; a weight that is masked counts as 0 in some trainers",
        source=(
            "TRL sampling/importance_sampling_ratio/mean, verl rollout_corr/rollout_is_mean, "
            "NeMo RL sampling_importance_ratio"
        ),
    ),
)
