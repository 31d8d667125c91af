"""Our own cost and losses."""

from __future__ import annotations

from rlvitals.contract.metrics.metric import Merge, Metric, Worse

OWN: tuple[Metric, ...] = (
    Metric(
        name="rlvitals.overhead",
        unit="s",
        merge=Merge.SUM,
        worse=Worse.UP,
        meaning="Time that the monitor spent in the training thread in this step.",
        formula="clock",
        shape="a scalar",
    ),
    Metric(
        name="rlvitals.dropped",
        unit="{record}",
        merge=Merge.LAST,
        worse=Worse.UP,
        meaning="Records lost so far, for every reason together.",
        formula="client",
        shape="a scalar",
    ),
    Metric(
        name="rlvitals.errors",
        unit="{error}",
        merge=Merge.LAST,
        worse=Worse.UP,
        meaning="Errors of ours that the guard kept from the trainer so far.",
        formula="client",
        shape="a scalar",
    ),
    Metric(
        name="rlvitals.spool_bytes",
        unit="By",
        merge=Merge.LAST,
        worse=Worse.UP,
        meaning="Bytes on disk that the service has not acknowledged.",
        formula="client",
        shape="a scalar",
    ),
)
