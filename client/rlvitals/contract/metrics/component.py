"""Reward components against each other and the total, over steps: derived from rewards/<name>/mean."""

from __future__ import annotations

from rlvitals.contract.metrics.metric import Merge, Metric, Worse

_MEANS = "rewards/<name>/mean (or rewards/<name>) and reward.mean, step by step"
_EDGE = (
    "Derived where rules are judged and stored nowhere; an alert shows the component's own name. Missing where no "
    "components are logged."
)
_LEVEL = "levels are means of the last 25 steps (5 before step 50, 1 before step 10)"

COMPONENT: tuple[Metric, ...] = (
    Metric(
        name="component.constant_steps",
        unit="{step}",
        merge=Merge.MAX,
        worse=Worse.UP,
        meaning="For how many steps the longest-standing component has had exactly the same mean.",
        formula="max over components of the run of equal values",
        shape=_MEANS,
        edge=f"{_EDGE} NaN and infinities end a run.",
    ),
    Metric(
        name="component.traded",
        unit="1",
        merge=Merge.MAX,
        worse=Worse.UP,
        meaning="Share of its best level that a component has lost while the total reward has grown since then.",
        formula=f"max over components of 1 - level / best level, where the total's level is higher now; {_LEVEL}",
        shape=_MEANS,
        edge=(
            f"{_EDGE} 0 where none has fallen by more than six standard errors (before step 10: on every step "
            "since the first); components whose best level is not above 0 are left out."
        ),
    ),
    Metric(
        name="component.task_traded",
        unit="1",
        merge=Merge.MAX,
        worse=Worse.UP,
        meaning=(
            "The same of components whose name says that they measure the task itself: accuracy, correct, answer, "
            "success, solved and the like."
        ),
        formula="as component.traded",
        shape=_MEANS,
        edge=f"{_EDGE} Missing before a component's step 50.",
    ),
)
