"""Runs that are going on, told step by step and judged as the worker judges them."""

from __future__ import annotations

import math
from collections.abc import Mapping

from rlvitals.contract.report import ReportBatch, RunInfo, StepReport
from rlvitals_monitor.auth import Principal
from rlvitals_monitor.collector import collect
from rlvitals_monitor.document import Document
from rlvitals_monitor.worker import Worker
from tests.dashboard.house import House, now_utc

OWNER = Principal(name="owner", scopes=frozenset({"admin"}))
CALM = {"reward.mean": 0.4, "length.mean": 200.0, "gradient.norm": 1.0, "policy.entropy": 1.2, "policy.loss": 0.1}
ILL = {**CALM, "gradient.norm": math.nan, "length.mean": 900.0}


def tell(house: House, run: str, values: Mapping[str, float], steps: range, name: str = "") -> None:
    """The same values at each of ``steps``, judged at once."""
    now = now_utc()
    rows = tuple(
        StepReport(seq=at, step=at, time_s=now.timestamp() - 5 * (steps.stop - at), values=values) for at in steps
    )
    info = RunInfo(id=run, project="math-grpo", name=name or run, framework="trl")
    batch = ReportBatch(run=info, attempt="a1", writer="w", steps=rows)
    collect(house.store, Document(batch=batch), OWNER, now)
    judge(house)
    house.app.state.live.publish(run)


def judge(house: House) -> None:
    Worker(house.store, book=house.app.state.rulebook).tick(now_utc())
