"""A trainer's clock that is wrong: its steps get the right times, and what was sent late is still late."""

from __future__ import annotations

import math

import pytest

from rlvitals.contract.report import Event, EventKind, Heartbeat, ReportBatch, RunInfo, StepReport
from rlvitals_monitor.clocks import TOLERATED_S, on_our_clock
from tests.monitor.planted import NOW

NOW_S = NOW.timestamp()
DAY_S = 86_400.0


def sent(ahead_s: float, *, step_ago_s: float = 5.0, beat_s: float | None = None) -> ReportBatch:
    """By a trainer whose clock is ``ahead_s`` ahead, ``step_ago_s`` after a step."""
    then = NOW_S + ahead_s - step_ago_s
    return ReportBatch(
        run=RunInfo(id="r1"),
        attempt="a1",
        steps=(StepReport(seq=1, step=1, time_s=then, values={"loss": math.nan}),),
        events=(Event(seq=2, time_s=then, kind=EventKind.NOTE),),
        heartbeat=Heartbeat(time_s=NOW_S + ahead_s if beat_s is None else beat_s),
    )


@pytest.mark.parametrize("ahead_s", [DAY_S, -DAY_S, 400 * DAY_S, TOLERATED_S + 1, -TOLERATED_S - 1])
def test_times_of_a_wrong_clock_are_moved_to_ours(ahead_s: float) -> None:
    moved = on_our_clock(sent(ahead_s), NOW)
    assert moved.steps[0].time_s == pytest.approx(NOW_S - 5.0, abs=1e-3)
    assert moved.events[0].time_s == pytest.approx(NOW_S - 5.0, abs=1e-3)
    assert math.isnan(moved.steps[0].values["loss"])


@pytest.mark.parametrize("ahead_s", [0.0, TOLERATED_S, -TOLERATED_S])
def test_a_clock_that_agrees_changes_nothing(ahead_s: float) -> None:
    batch = sent(ahead_s)
    assert on_our_clock(batch, NOW) is batch


def test_what_was_sent_late_by_a_right_clock_stays_late() -> None:
    batch = sent(0.0, step_ago_s=DAY_S)
    assert on_our_clock(batch, NOW) is batch


@pytest.mark.parametrize("beat_s", [math.nan, math.inf, -math.inf])
def test_a_heartbeat_that_tells_no_time_moves_nothing(beat_s: float) -> None:
    batch = sent(DAY_S, beat_s=beat_s)
    assert on_our_clock(batch, NOW) is batch


def test_without_a_heartbeat_nothing_is_known() -> None:
    batch = ReportBatch(run=RunInfo(id="r1"), attempt="a1")
    assert on_our_clock(batch, NOW) is batch
