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
        formula="sum over our hooks and reports of clock at the end - clock at the beginning",
        shape="a scalar of this process",
        edge="0 where nothing was reported; time that a GPU spends on our sums is not in it",
    ),
    Metric(
        name="rlvitals.dropped",
        unit="{record}",
        merge=Merge.LAST,
        worse=Worse.UP,
        meaning="Records lost so far, for every reason together.",
        formula="count since the process began",
        shape="a scalar of this process",
        edge="0 while nothing is lost; Reporter.counters() has each reason by itself",
    ),
    Metric(
        name="rlvitals.errors",
        unit="{error}",
        merge=Merge.LAST,
        worse=Worse.UP,
        meaning="Errors of ours that the guard kept from the trainer so far.",
        formula="count since the process began",
        shape="a scalar of this process",
        edge="0 while none was kept; each is told once, by the logger rlvitals",
    ),
    Metric(
        name="rlvitals.spool_bytes",
        unit="By",
        merge=Merge.LAST,
        worse=Worse.UP,
        meaning="Bytes on disk that the service has not acknowledged.",
        formula="bytes written - bytes that receipts covered",
        shape="a scalar of this process",
        edge="grows while the service cannot be reached, up to the bound on the disk",
    ),
)
