from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from rlvitals.contract.alert import Severity
from rlvitals.contract.view import Light, RunState
from rlvitals_monitor.store.pulse import Signs, long_gap_seconds, step_seconds, take
from tests.monitor.batches import NOW

MINUTE = 60.0


def began(minutes_ago: float) -> datetime:
    return NOW - timedelta(minutes=minutes_ago)


def signs(*, seen_s: float = 0, progress_s: float | None = 0, **other: Any) -> Signs:
    """A run that was heard ``seen_s`` and advanced ``progress_s`` seconds ago."""
    told: dict[str, Any] = {
        "phase": "update",
        "step_s": 10.0,
        "began_at": NOW - timedelta(hours=2),
        "steps": 0 if progress_s is None else 20,
    } | other
    progress = None if progress_s is None else NOW - timedelta(seconds=progress_s)
    return Signs(seen_at=NOW - timedelta(seconds=seen_s), progress_at=progress, **told)


@pytest.mark.parametrize(
    ("given", "state", "light"),
    [
        (signs(), RunState.RUNNING, Light.GREEN),
        (signs(progress_s=None, began_at=NOW), RunState.CREATED, Light.GREY),
        (signs(seen_s=61), RunState.LATE, Light.AMBER),
        (signs(seen_s=11 * MINUTE), RunState.STALLED, Light.RED),
        (signs(progress_s=299), RunState.RUNNING, Light.GREEN),
        (signs(progress_s=301), RunState.LATE, Light.AMBER),
        (signs(progress_s=31 * MINUTE), RunState.STALLED, Light.RED),
        (signs(progress_s=61 * MINUTE, phase="eval"), RunState.LATE, Light.AMBER),
        (signs(progress_s=59 * MINUTE, phase="eval"), RunState.RUNNING, Light.GREEN),
        (signs(progress_s=20 * MINUTE, phase="checkpoint", step_s=0.5), RunState.RUNNING, Light.GREEN),
        (signs(progress_s=361 * MINUTE, phase="eval"), RunState.STALLED, Light.RED),
        (signs(progress_s=11 * MINUTE, step_s=5 * MINUTE), RunState.RUNNING, Light.GREEN),
        (signs(progress_s=11 * MINUTE, step_s=0.1, gap_s=10 * MINUTE), RunState.RUNNING, Light.GREEN),
        (signs(progress_s=16 * MINUTE, step_s=0.1, gap_s=10 * MINUTE), RunState.LATE, Light.AMBER),
        (signs(progress_s=46 * MINUTE, step_s=0.1, gap_s=10 * MINUTE), RunState.STALLED, Light.RED),
        (signs(progress_s=31 * MINUTE, step_s=None, began_at=began(32)), RunState.STALLED, Light.RED),
        (signs(progress_s=11 * MINUTE, step_s=None, began_at=began(31)), RunState.RUNNING, Light.GREEN),
        (signs(progress_s=None, phase="starting", began_at=began(181)), RunState.STALLED, Light.RED),
        (signs(phase="paused", progress_s=30 * MINUTE), RunState.PAUSED, Light.AMBER),
        (signs(phase="paused", seen_s=2 * MINUTE), RunState.LATE, Light.AMBER),
        (signs(phase="finished", seen_s=99 * MINUTE), RunState.FINISHED, Light.GREEN),
        (signs(phase="finished", progress_s=None), RunState.FINISHED, Light.GREY),
        (signs(phase="finished", stop_applied=True), RunState.STOPPED, Light.GREY),
        (signs(phase="failed"), RunState.FAILED, Light.RED),
    ],
)
def test_a_state_follows_from_phase_and_two_clocks(given: Signs, state: RunState, light: Light) -> None:
    felt = take(given, NOW)
    assert (felt.state, felt.light) == (state, light)
    assert felt.reason


@pytest.mark.parametrize(
    ("firing", "light"),
    [
        ([Severity.INFO], Light.GREEN),
        ([Severity.WARNING], Light.AMBER),
        ([Severity.WARNING, Severity.CRITICAL, Severity.INFO], Light.RED),
    ],
)
def test_the_light_is_the_worst_that_fires(firing: list[Severity], light: Light) -> None:
    felt = take(signs(firing=firing, worst_rule="truncation"), NOW)
    assert (felt.state, felt.light) == (RunState.RUNNING, light)


def test_an_alarm_says_how_many_and_which_is_worst() -> None:
    felt = take(signs(firing=[Severity.WARNING, Severity.CRITICAL], worst_rule="byte_garbage"), NOW)
    assert felt.reason == "2 alerts firing: byte_garbage is critical"


def test_a_finished_run_has_a_verdict_the_one_that_its_rules_gave() -> None:
    well = take(signs(phase="finished"), NOW)
    assert (well.light, well.reason) == (Light.GREEN, "finished; no alert was firing at its end")
    ill = take(signs(phase="finished", firing=[Severity.CRITICAL], worst_rule="kl_drift"), NOW)
    assert (ill.light, ill.reason) == (Light.RED, "1 alert firing: kl_drift is critical")
    assert take(signs(phase="finished", progress_s=None), NOW).reason == "finished without a step"


def test_a_failure_outshines_a_warning() -> None:
    felt = take(signs(phase="failed", firing=[Severity.WARNING], worst_rule="x"), NOW)
    assert (felt.light, felt.reason) == (Light.RED, "the trainer ended with an error")


@pytest.mark.parametrize(
    ("times", "usual"), [([], None), ([1.0], None), ([1.0, 1.0], None), ([0, 2, 4, 104], 2), ([5, 3, 9], 6)]
)
def test_the_usual_step_is_the_median_gap(times: list[float], usual: float | None) -> None:
    assert step_seconds(times) == usual


def test_an_asynchronous_trainer_whose_steps_come_in_bursts_is_never_late_between_them() -> None:
    """Sixteen steps within two seconds, twelve minutes without one, again and again."""
    times = [burst * 12 * MINUTE + i / 8 for burst in range(4) for i in range(16)]
    usual, gap = step_seconds(times), long_gap_seconds(times)
    assert usual == 0.125
    for minutes in range(13):
        felt = take(signs(progress_s=minutes * MINUTE, phase="rollout", step_s=usual, gap_s=gap), NOW)
        assert (felt.state, felt.light) == (RunState.RUNNING, Light.GREEN), minutes


@pytest.mark.parametrize(
    ("times", "gap"), [([], 0), ([1.0], 0), ([1, 2], 0), ([0, 1, 100_001, 100_003], 2), ([9, 1, 2, 4, 9], 2)]
)
def test_one_pause_or_one_jump_of_a_clock_is_not_the_usual_wait(times: list[float], gap: float) -> None:
    assert long_gap_seconds(times) == gap
