"""The service's clock, and the trainer's against it: two machines need not agree on the time of day."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import datetime, timezone

from rlvitals.contract.report import ReportBatch

TOLERATED_S = 60.0
"""A difference that may as well be the way of the request, or what time servers leave."""


def utc_now() -> datetime:
    return datetime.now(timezone.utc)


def on_our_clock(batch: ReportBatch, now: datetime) -> ReportBatch:
    """The batch with its times moved to the service's clock, where the trainer's is far from it.

    A heartbeat says what the trainer's clock showed when the batch was sent. So a clock that is wrong is told from
    records that were sent late, which keep their times. Without a heartbeat nothing is known, and nothing moved.
    """
    if batch.heartbeat is None or not math.isfinite(batch.heartbeat.time_s):
        return batch
    ahead_s = batch.heartbeat.time_s - now.timestamp()
    if abs(ahead_s) <= TOLERATED_S:
        return batch
    return replace(
        batch,
        steps=tuple(replace(step, time_s=step.time_s - ahead_s) for step in batch.steps),
        events=tuple(replace(event, time_s=event.time_s - ahead_s) for event in batch.events),
        heartbeat=replace(batch.heartbeat, time_s=now.timestamp()),
    )
