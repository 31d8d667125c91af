"""Batches as a client would send them, for tests of the store and the API."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta, timezone
from typing import Any

from rlvitals.contract.report import Heartbeat, Phase, ReportBatch, RunInfo, StepReport

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=timezone.utc)
NOW_S = NOW.timestamp()


def after(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def step(seq: int, number: int, values: Mapping[str, float], **other: Any) -> StepReport:
    """The report of one step, one second apart from the next."""
    return StepReport(seq=seq, step=number, time_s=NOW_S + number, values=values, **other)


def batch(
    *steps: StepReport, run: str = "r1", attempt: str = "a1", writer: str = "main", **other: Any
) -> ReportBatch:
    info = other.pop("info", RunInfo(id=run))
    return ReportBatch(run=info, attempt=attempt, writer=writer, steps=steps, **other)


def heartbeat(phase: Phase, last_step: int | None = None) -> Heartbeat:
    return Heartbeat(time_s=NOW_S, phase=phase, last_step=last_step)


def counting(start: int = 1) -> Iterator[int]:
    return itertools.count(start)
