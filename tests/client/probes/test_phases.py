"""A step's seconds by phase, on a clock that the test turns."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rlvitals.contract.metrics import BY_NAME
from rlvitals.probes.phases import PhaseClock, StepPhase


class Hands:
    """A clock that stands still until it is told."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def pass_by(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def hands() -> Hands:
    return Hands()


@pytest.fixture
def clock(hands: Hands) -> PhaseClock:
    return PhaseClock(clock=hands)


def taken(clock: PhaseClock) -> dict[str, float]:
    return {name: value for name, value in clock.take().measured().values.items() if value}


def test_each_phase_adds_up_over_the_step_and_time_outside_is_nobodys(clock: PhaseClock, hands: Hands) -> None:
    for seconds in (1.0, 2.0):
        with clock.during(StepPhase.ROLLOUT):
            hands.pass_by(seconds)
        hands.pass_by(50.0)
    assert taken(clock) == {"progress.phase_rollout_s": 3.0}
    assert taken(clock) == {}


def test_a_phase_within_another_takes_its_time_from_it(clock: PhaseClock, hands: Hands) -> None:
    with clock.during(StepPhase.ROLLOUT):
        hands.pass_by(1.0)
        with clock.during(StepPhase.REWARD):
            hands.pass_by(5.0)
        hands.pass_by(2.0)
    assert taken(clock) == {"progress.phase_rollout_s": 3.0, "progress.phase_reward_s": 5.0}


def test_a_phase_that_is_open_goes_on_into_the_next_step(clock: PhaseClock, hands: Hands) -> None:
    clock.enter(StepPhase.UPDATE)
    hands.pass_by(1.0)
    assert taken(clock) == {"progress.phase_update_s": 1.0}
    hands.pass_by(4.0)
    clock.leave(StepPhase.UPDATE)
    assert taken(clock) == {"progress.phase_update_s": 4.0}


def test_an_exception_ends_the_phase(clock: PhaseClock, hands: Hands) -> None:
    def fail(act: Callable[[float], None]) -> None:
        with clock.during(StepPhase.EVAL):
            act(1.0)
            raise KeyError("lost")

    with pytest.raises(KeyError):
        fail(hands.pass_by)
    hands.pass_by(9.0)
    assert taken(clock) == {"progress.phase_eval_s": 1.0}


def test_leaving_ends_what_was_left_open_within_and_a_stranger_is_ignored(clock: PhaseClock, hands: Hands) -> None:
    clock.enter(StepPhase.ROLLOUT)
    clock.enter(StepPhase.REWARD)
    hands.pass_by(1.0)
    clock.leave(StepPhase.CHECKPOINT)
    hands.pass_by(1.0)
    clock.leave(StepPhase.ROLLOUT)
    hands.pass_by(9.0)
    assert taken(clock) == {"progress.phase_reward_s": 2.0}


def test_what_did_not_happen_is_0_seconds_and_what_cannot_be_seen_is_nothing(hands: Hands) -> None:
    clock = PhaseClock((StepPhase.ROLLOUT, StepPhase.UPDATE), clock=hands)
    assert clock.take().measured().values == {"progress.phase_rollout_s": 0.0, "progress.phase_update_s": 0.0}


def test_the_slowest_writer_is_told_whatever_the_order(hands: Hands) -> None:
    tallies = []
    for seconds in (2.0, 7.0, 3.0):
        clock = PhaseClock(clock=hands)
        with clock.during(StepPhase.UPDATE):
            hands.pass_by(seconds)
        tallies.append(clock.take())
    for order in (tallies, tallies[::-1]):
        assert sum(order).measured().values["progress.phase_update_s"] == 7.0


def test_a_restart_forgets_what_an_error_left_open(clock: PhaseClock, hands: Hands) -> None:
    clock.enter(StepPhase.REWARD)
    hands.pass_by(5.0)
    clock.restart()
    hands.pass_by(1.0)
    assert not any(clock.take().measured().values.values())


def test_every_phase_is_in_the_registry(clock: PhaseClock) -> None:
    assert set(clock.take().measured().values) <= set(BY_NAME)
