"""The value head of actor-critic training, as the trainer itself logs it."""

from __future__ import annotations

from rlvitals.contract.metrics.metric import Merge, Metric, Worse

_LOGGED = "a scalar of the trainer's own log"
_EDGE = "missing where there is no value head; NaN and infinities are told as they are"

CRITIC: tuple[Metric, ...] = (
    Metric(
        name="critic.explained_variance",
        unit="1",
        merge=Merge.LAST,
        worse=Worse.DOWN,
        meaning="How much of the returns' variance the values explain: 1 all of it, 0 no better than their mean.",
        formula="1 - Var(returns - values) / Var(returns)",
        shape=_LOGGED,
        edge=f"{_EDGE}; without a lower bound where the returns hardly vary",
        source="verl critic/vf_explained_var",
    ),
    Metric(
        name="critic.value_loss",
        unit="1",
        merge=Merge.LAST,
        worse=Worse.UP,
        meaning="Error of the values against the returns, in squared units of the reward.",
        formula="mean (value - return)^2 / 2, clipped as the trainer does",
        shape=_LOGGED,
        edge=_EDGE,
        source="verl critic/vf_loss, TRL PPO loss/value_avg, OpenRLHF critic_loss, slime train/value_loss",
    ),
    Metric(
        name="critic.gradient_norm",
        unit="1",
        merge=Merge.LAST,
        worse=Worse.UP,
        meaning="Global gradient norm of the value head's optimizer before clipping.",
        formula="sqrt(sum g^2)",
        shape=_LOGGED,
        edge=_EDGE,
        source="verl critic/grad_norm",
    ),
    Metric(
        name="critic.clip_share",
        unit="1",
        merge=Merge.LAST,
        worse=Worse.UP,
        meaning="Share of values whose step was clipped.",
        formula="values beyond the clip range of their old ones / values",
        shape=_LOGGED,
        edge=_EDGE,
        source="verl critic/vf_clipfrac, TRL PPO val/clipfrac_avg",
    ),
)
