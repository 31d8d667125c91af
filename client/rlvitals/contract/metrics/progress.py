"""Where the job is and how fast it goes."""

from __future__ import annotations

from rlvitals.contract.metrics.metric import Merge, Metric, Worse

PROGRESS: tuple[Metric, ...] = (
    Metric(
        name="progress.step_time",
        unit="s",
        merge=Merge.MAX,
        worse=Worse.UP,
        meaning="Wall time of the step.",
        formula="clock",
        shape="a scalar",
    ),
    Metric(
        name="progress.tokens",
        unit="{token}",
        merge=Merge.LAST,
        worse=Worse.NEITHER,
        meaning="Tokens seen since the start, by the trainer's count.",
        formula="trainer",
        shape="a scalar",
    ),
    Metric(
        name="progress.epoch",
        unit="1",
        merge=Merge.LAST,
        worse=Worse.NEITHER,
        meaning="Epoch by the trainer's count.",
        formula="trainer",
        shape="a scalar",
    ),
)
