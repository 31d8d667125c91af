"""Late, stalled, lost: when it is said, when it ends, and when it must not be said."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from rlvitals.contract.alert import Alert, AlertState, Severity, Transition
from rlvitals_monitor.alerts.liveness import RULES, SILENCE, STEPLESS, judge
from rlvitals_monitor.store.pulse import Heard, Signs
from tests.monitor.batches import NOW, after

MINUTE, HOUR = 60.0, 3600.0
LONG_AGO = NOW - timedelta(days=2)
LATE, STALLED, LOST = (rule.name for rule in RULES)


def heard(*, seen_s: float = 0.0, step_ago_s: float | None = 0.0, attempt: str = "a1", **given: Any) -> Heard:
    """A run of ten-second steps, as it stands at `NOW`."""
    told: dict[str, Any] = {"phase": "update", "began_at": NOW - timedelta(hours=20), "step_s": 10.0} | given
    progress = None if step_ago_s is None else NOW - timedelta(seconds=step_ago_s)
    signs = Signs(seen_at=NOW - timedelta(seconds=seen_s), progress_at=progress, **told)
    return Heard(
        run="r1", attempt=attempt, attempt_number=1, last_step=None if step_ago_s is None else 42, signs=signs
    )


def told(run: Heard, firing: Iterable[Alert] = (), now: datetime = NOW, **given: Any) -> list[tuple[str, str]]:
    since = given.pop("listening_since", LONG_AGO)
    return [(t.alert.rule, t.after.value) for t in judge(run, firing, now, since, **given)]


def open_at(run: Heard, now: datetime = NOW) -> list[Alert]:
    return [t.alert for t in judge(run, (), now, LONG_AGO)]


FIRES = {
    LATE: [(LATE, "firing")],
    STALLED: [(LATE, "firing"), (STALLED, "firing")],
    LOST: [(LATE, "firing"), (STALLED, "firing"), (LOST, "firing")],
}


@pytest.mark.parametrize(
    ("run", "stage"),
    [
        (heard(), None),
        (heard(seen_s=90, step_ago_s=125), None),  # late, but not for long
        (heard(seen_s=4 * MINUTE, step_ago_s=5 * MINUTE), LATE),
        (heard(seen_s=11 * MINUTE, step_ago_s=12 * MINUTE), STALLED),
        (heard(seen_s=61 * MINUTE, step_ago_s=62 * MINUTE), LOST),
        (heard(step_ago_s=6 * MINUTE), None),
        (heard(step_ago_s=8 * MINUTE), LATE),
        (heard(step_ago_s=31 * MINUTE), STALLED),
        (heard(step_ago_s=10 * HOUR), STALLED),  # alive, so never lost
        (heard(step_ago_s=50 * MINUTE, phase="eval"), None),
        (heard(step_ago_s=7 * HOUR, phase="eval"), STALLED),
        (heard(step_ago_s=10 * HOUR, phase="paused"), None),
        (heard(seen_s=2 * HOUR, step_ago_s=10 * HOUR, phase="paused"), LOST),
        (heard(step_ago_s=50 * MINUTE, step_s=900.0, gap_s=1200.0), None),
        (heard(step_ago_s=None, began_at=NOW - timedelta(minutes=50), phase="starting"), None),
        (heard(step_ago_s=None, began_at=NOW - timedelta(minutes=70), phase="starting"), LATE),
        (heard(step_ago_s=None, began_at=NOW - timedelta(hours=4), phase="starting"), STALLED),
        (heard(seen_s=3 * HOUR, step_ago_s=3 * HOUR, phase="finished"), None),
        (heard(seen_s=3 * HOUR, step_ago_s=3 * HOUR, phase="failed"), None),
        (heard(seen_s=3 * HOUR, step_ago_s=None, phase="finished"), None),
    ],
)
def test_it_is_said_by_the_clocks_and_the_phase(run: Heard, stage: str | None) -> None:
    assert told(run) == ([] if stage is None else FIRES[stage])


def test_how_grave_it_is_and_what_it_tells() -> None:
    late, stalled, lost = judge(heard(seen_s=2 * HOUR, step_ago_s=2 * HOUR + 60), (), NOW, LONG_AGO)
    assert [t.alert.severity for t in (late, stalled, lost)] == [
        Severity.INFO,
        Severity.WARNING,
        Severity.CRITICAL,
    ]
    assert lost.alert.summary == "No word from the trainer for 2 h; its last step was 42."
    assert (lost.alert.metric, lost.alert.value, lost.alert.since_step) == (SILENCE, 2 * HOUR, 42)
    assert (lost.alert.since_time, lost.at) == (NOW - timedelta(hours=2), NOW)
    _, stuck = judge(heard(step_ago_s=40 * MINUTE), (), NOW, LONG_AGO)
    assert stuck.alert.summary == "Alive, but no new step for 40 min (phase update); its last step was 42."
    assert (stuck.alert.metric, stuck.alert.value) == (STEPLESS, 40 * MINUTE)
    first = judge(heard(step_ago_s=None, began_at=NOW - timedelta(hours=4), phase="rollout"), (), NOW, LONG_AGO)
    assert "it has made no step" in first[0].alert.summary


def test_it_is_said_once_and_ends_by_itself() -> None:
    run = heard(seen_s=2 * HOUR, step_ago_s=2 * HOUR)
    known = open_at(run)
    assert told(run, known) == []
    back = replace(run, signs=replace(run.signs, seen_at=NOW, progress_at=NOW), last_step=50)
    ends = judge(back, known, NOW, LONG_AGO)
    assert [(t.alert.rule, t.after) for t in ends] == [(n, AlertState.RESOLVED) for n in (LATE, STALLED, LOST)]
    assert {(t.reason, t.step, t.alert.resolved_at) for t in ends} == {("the trainer is heard again", 50, NOW)}


def test_one_that_speaks_again_but_makes_no_step_is_no_longer_lost_but_stalled() -> None:
    run = heard(seen_s=2 * HOUR, step_ago_s=2 * HOUR)
    back = replace(run, signs=replace(run.signs, seen_at=NOW))
    assert told(back, open_at(run)) == [(LOST, "resolved")]


@pytest.mark.parametrize("phase", ["finished", "failed"])
def test_a_run_that_ended_needs_no_one(phase: str) -> None:
    run = heard(seen_s=2 * HOUR, step_ago_s=2 * HOUR)
    over = replace(run, signs=replace(run.signs, phase=phase))
    ends = judge(over, open_at(run), NOW, LONG_AGO)
    assert [(t.after.value, t.reason) for t in ends] == [("resolved", f"the trainer {phase}")] * 3


def test_a_new_attempt_ends_what_was_said_of_the_one_before() -> None:
    known = open_at(heard(seen_s=2 * HOUR, step_ago_s=2 * HOUR))
    ends = judge(heard(attempt="a2", step_ago_s=None, began_at=NOW, phase="starting"), known, NOW, LONG_AGO)
    assert {(t.after.value, t.reason) for t in ends} == {("resolved", "a newer attempt of the run began")}
    assert {t.alert.attempt for t in ends} == {"a1"}


def test_after_a_restart_of_the_service_nobody_is_late_before_there_was_time_to_speak() -> None:
    run = heard(seen_s=5 * HOUR, step_ago_s=5 * HOUR)
    for minutes, said in ((1.0, []), (5.0, FIRES[LATE]), (11.0, FIRES[STALLED]), (61.0, FIRES[LOST])):
        assert told(run, listening_since=NOW - timedelta(minutes=minutes)) == said


def test_a_worker_that_began_just_now_ends_nothing_that_another_one_said() -> None:
    run = heard(seen_s=5 * HOUR, step_ago_s=5 * HOUR)
    assert told(run, open_at(run), listening_since=NOW) == []


def test_a_clock_that_was_set_back_says_nothing_and_ends_nothing() -> None:
    run = heard(seen_s=2 * HOUR, step_ago_s=2 * HOUR)
    assert told(run, open_at(run), NOW - timedelta(hours=3)) == []
    assert told(run, (), NOW - timedelta(hours=3)) == []


def test_after_an_evaluation_or_a_pause_the_clock_of_steps_begins_anew() -> None:
    resumed = heard(step_ago_s=2 * HOUR)
    assert told(resumed) == FIRES[STALLED]
    assert told(resumed, busy_until=NOW - timedelta(minutes=1)) == []
    assert told(resumed, busy_until=NOW - timedelta(minutes=31)) == FIRES[STALLED]
    hanging = heard(step_ago_s=7 * HOUR, phase="eval")
    assert told(hanging, busy_until=NOW - timedelta(hours=6.5)) == FIRES[STALLED]
    assert told(hanging, busy_until=NOW - timedelta(minutes=30)) == []


def test_a_client_that_speaks_only_with_its_steps_is_given_the_time_of_its_steps() -> None:
    rare = {"step_s": 20 * MINUTE, "gap_s": 20 * MINUTE}
    assert told(heard(seen_s=50 * MINUTE, step_ago_s=50 * MINUTE, **rare)) == []
    assert told(heard(seen_s=49 * MINUTE, step_ago_s=50 * MINUTE, **rare)) == FIRES[STALLED]
    assert told(heard(seen_s=5 * HOUR, step_ago_s=5 * HOUR, **rare)) == FIRES[LOST]


def test_the_same_question_has_the_same_answer_and_two_silences_are_two_alerts() -> None:
    run = heard(seen_s=2 * HOUR, step_ago_s=2 * HOUR)
    assert judge(run, (), NOW, LONG_AGO) == judge(run, (), NOW, LONG_AGO)
    again = judge(run, (), after(3600), LONG_AGO)
    assert {t.alert.id for t in again}.isdisjoint(alert.id for alert in open_at(run))


def history(seed: int) -> list[tuple[float, float, str]]:
    """(seconds, longest silence until the next word, phase) of a trainer that lives through a day and ends."""
    dice = random.Random(seed)
    at, words = 0.0, []
    while at < 8 * HOUR:
        phase = dice.choice(["rollout", "update", "eval", "checkpoint"])
        pause = dice.choice([5.0, 15.0, 45.0, 45.0, dice.choice([20 * MINUTE, 2 * HOUR])])
        words.append((at, pause, phase))
        at += pause
    return [*words, (at, 0.0, "finished")]


@pytest.mark.parametrize("seed", range(20))
def test_over_any_day_what_begins_also_ends_and_nothing_is_said_of_a_run_that_talks(seed: int) -> None:
    firing: dict[str, Alert] = {}
    said: list[Transition] = []
    for at, pause, phase in history(seed):
        signs = Signs(phase=phase, began_at=NOW, seen_at=after(at), progress_at=after(at), step_s=20.0)
        run = Heard(run="r1", attempt="a1", attempt_number=1, last_step=int(at), signs=signs)
        for look in range(int(at), int(at + pause) + 1, 10):
            changes = judge(run, firing.values(), after(look), NOW)
            assert not changes or pause > 60 or {t.after for t in changes} == {AlertState.RESOLVED}
            for change in changes:
                said.append(change)
                if change.after is AlertState.FIRING:
                    assert change.alert.rule not in firing
                    firing[change.alert.rule] = change.alert
                else:
                    del firing[change.alert.rule]
    assert not firing
    assert len({t.id for t in said}) == len(said)
