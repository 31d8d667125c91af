"""THE registry: every metric that RL Vitals itself knows, one module a family.

Docs, chart panels and rule checks are derived from this table. Names that are not here are the user's own and
are stored and drawn all the same.
"""

from __future__ import annotations

from rlvitals.contract.metrics.component import COMPONENT
from rlvitals.contract.metrics.correction import CORRECTION
from rlvitals.contract.metrics.critic import CRITIC
from rlvitals.contract.metrics.gradient import GRADIENT
from rlvitals.contract.metrics.guard import GUARD
from rlvitals.contract.metrics.kl import KL
from rlvitals.contract.metrics.length import LENGTH
from rlvitals.contract.metrics.metric import Family, Merge, Metric, Worse
from rlvitals.contract.metrics.numerics import NUMERICS
from rlvitals.contract.metrics.own import OWN
from rlvitals.contract.metrics.policy import POLICY
from rlvitals.contract.metrics.progress import PROGRESS
from rlvitals.contract.metrics.ratio import RATIO
from rlvitals.contract.metrics.reward import REWARD
from rlvitals.contract.metrics.text import TEXT

__all__ = ["BY_NAME", "METRICS", "Family", "Merge", "Metric", "Worse", "find"]

METRICS: tuple[Metric, ...] = (
    *TEXT,
    *LENGTH,
    *REWARD,
    *COMPONENT,
    *KL,
    *RATIO,
    *CORRECTION,
    *POLICY,
    *CRITIC,
    *GRADIENT,
    *NUMERICS,
    *GUARD,
    *PROGRESS,
    *OWN,
)

BY_NAME: dict[str, Metric] = {metric.name: metric for metric in METRICS}
if len(BY_NAME) != len(METRICS):
    raise ValueError("a metric is registered twice")


def find(name: str) -> Metric | None:
    """The registered metric, or None for a name of the user's own."""
    return BY_NAME.get(name)
