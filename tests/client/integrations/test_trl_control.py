"""Commands on a real TRL trainer: applied at step boundaries, with values read back from it before and after."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

import rlvitals
from rlvitals.contract.command import Command, CommandKind, CommandState, Outcome
from rlvitals.contract.report import Event, EventKind
from rlvitals.integrations.trl.callback import STATE_KEY, VitalsCallback
from rlvitals.verdict import ControlLimits
from tests.client.integrations import tiny
from tests.client.integrations.conftest import MakeTrainer

pytestmark = [
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]


def command(kind: CommandKind, argument: float | None = None, name: str = "c1") -> Command:
    return Command(
        id=name,
        kind=kind,
        argument=argument,
        expires_at=datetime.now(timezone.utc) + timedelta(hours=1),
        who="test",
    )


def offered(
    trainer: Any, at: dict[int, Command], *, seen: Callable[[int], object] | None = None, **attach: Any
) -> rlvitals.Reporter:
    """Attaches, then trains with each command of ``at`` arriving just before its step ends."""
    reporters: list[rlvitals.Reporter] = []
    trainer.add_callback(tiny.AtStepEnd(lambda step: reporters[0].control.offer([at[step]] if step in at else [])))
    reporters.append(rlvitals.attach(trainer, **attach))
    if seen is not None:
        trainer.add_callback(tiny.AtStepEnd(seen))
    trainer.train()
    return reporters[0]


def outcomes(reporter: rlvitals.Reporter) -> list[Outcome]:
    return [record for record in tiny.records(reporter) if isinstance(record, Outcome)]


def notes(reporter: rlvitals.Reporter) -> list[dict[str, object]]:
    found = [record for record in tiny.records(reporter) if isinstance(record, Event)]
    return [dict(event.payload) for event in found if event.kind is EventKind.NOTE]


def test_the_kl_coefficient_changes_at_the_boundary_and_the_next_step_shows_it(make: MakeTrainer) -> None:
    trainer = make(beta=0.5)
    reporter = offered(trainer, {2: command(CommandKind.SET_KL_COEF, 0.05)})
    (outcome,) = outcomes(reporter)
    assert (outcome.state, outcome.step, outcome.before, outcome.after) == (CommandState.APPLIED, 2, 0.5, 0.05)
    assert trainer.beta == 0.05
    assert [step.values["kl.coef"] for step in tiny.steps(reporter)] == [0.5, 0.5, 0.05, 0.05]


def test_a_knob_of_the_users_own_is_turned_between_two_steps_and_read_back(make: MakeTrainer) -> None:
    trainer = make(temperature=1.0)
    told = replace(command(CommandKind.SET_KNOB, 0.7), knob="temperature")
    at: dict[int, float] = {}
    reporters: list[rlvitals.Reporter] = []

    def step_ends(step: int) -> None:
        at[step] = trainer.temperature
        reporters[0].control.offer([told] if step == 2 else [])

    trainer.add_callback(tiny.AtStepEnd(step_ends))
    reporters.append(rlvitals.attach(trainer))
    reporters[0].knob(
        "temperature",
        lambda value: setattr(trainer, "temperature", value),
        get=lambda: trainer.temperature,
        low=0.5,
        high=1.5,
    )
    trainer.train()
    (outcome,) = outcomes(reporters[0])
    assert (outcome.state, outcome.step, outcome.before, outcome.after) == (CommandState.APPLIED, 2, 1.0, 0.7)
    assert at == {1: 1.0, 2: 1.0, 3: 0.7, 4: 0.7}


def test_a_lower_coefficient_lowers_the_measured_pull_in_proportion(make: MakeTrainer) -> None:
    slow = {"beta": 1.0, "num_iterations": 4, "learning_rate": 1e-4, "lr_scheduler_type": "constant"}
    plain = tiny.steps(offered(make(**slow), {}))
    lowered = tiny.steps(offered(make(**slow), {3: command(CommandKind.SET_KL_COEF, 0.1)}))
    assert lowered[2].values["kl.pull_ratio"] == plain[2].values["kl.pull_ratio"]
    assert lowered[3].values["kl.pull_ratio"] == pytest.approx(0.1 * plain[3].values["kl.pull_ratio"], rel=1e-6)


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf, None])
def test_a_coefficient_that_is_no_positive_number_is_refused(make: MakeTrainer, value: float | None) -> None:
    trainer = make(max_steps=2)
    (outcome,) = outcomes(offered(trainer, {1: command(CommandKind.SET_KL_COEF, value)}))
    assert outcome.state is CommandState.REFUSED
    assert trainer.beta == 0.05


def test_a_coefficient_beyond_the_clients_own_bounds_is_refused(
    make: MakeTrainer,
) -> None:
    trainer = make(max_steps=2)
    (outcome,) = outcomes(
        offered(trainer, {1: command(CommandKind.SET_KL_COEF, 0.4)}, limits=ControlLimits(kl_factor_high=2.0))
    )
    assert outcome.state is CommandState.REFUSED
    assert "bounds" in outcome.reason
    assert trainer.beta == 0.05


def test_without_a_reference_model_the_coefficient_is_refused_with_the_reason(make: MakeTrainer) -> None:
    trainer = make(max_steps=2, beta=0.0)
    (outcome,) = outcomes(offered(trainer, {1: command(CommandKind.SET_KL_COEF, 0.1)}))
    assert (outcome.state, outcome.reason) == (
        CommandState.REFUSED,
        "beta is 0: TRL loads no reference model",
    )
    assert trainer.beta == 0.0


def test_a_scaled_learning_rate_lasts_through_the_schedule(make: MakeTrainer) -> None:
    plain = offered(make(max_steps=6, lr_scheduler_type="linear"), {})
    halved = offered(make(max_steps=6, lr_scheduler_type="linear"), {2: command(CommandKind.SCALE_LR, 0.5)})
    rates = [
        [step.values["policy.learning_rate"] for step in tiny.steps(reporter)] for reporter in (plain, halved)
    ]
    factors = [b / a for a, b in zip(*rates, strict=True)]
    assert factors == pytest.approx([1, 1, 0.5, 0.5, 0.5, 0.5])
    (outcome,) = outcomes(halved)
    assert outcome.after == pytest.approx(0.5 * (outcome.before or 0))


def test_a_checkpoint_is_written_on_demand(make: MakeTrainer, tmp_path: Path) -> None:
    reporter = offered(make(), {2: command(CommandKind.CHECKPOINT)})
    assert (tmp_path / "output" / "checkpoint-2" / "trainer_state.json").exists()
    assert [outcome.state for outcome in outcomes(reporter)] == [CommandState.APPLIED]


def test_stop_writes_a_checkpoint_and_ends_training(make: MakeTrainer, tmp_path: Path) -> None:
    trainer = make(max_steps=50)
    offered(trainer, {3: command(CommandKind.STOP)})
    assert trainer.state.global_step == 3
    assert (tmp_path / "output" / "checkpoint-3" / "trainer_state.json").exists()


def test_the_same_command_twice_is_done_once(make: MakeTrainer) -> None:
    again = command(CommandKind.SCALE_LR, 0.5)
    reporter = offered(make(), {1: again, 2: again}, limits=ControlLimits(cooldown_steps=0))
    assert len(outcomes(reporter)) == 1
    assert [step.values["policy.learning_rate"] for step in tiny.steps(reporter)] == pytest.approx(
        [1e-2, 5e-3, 5e-3, 5e-3]
    )


class Clockwork:
    """Stands in for the pause's wait: counts beats and may act on one."""

    def __init__(self, act: Callable[[int], object] = lambda beat: None) -> None:
        self.beats, self._act = 0, act

    def __call__(self, seconds: float) -> None:
        self.beats += 1
        assert self.beats < 10_000, "the pause never ended"
        self._act(self.beats)


def paused(trainer: Any, clockwork: Clockwork, **attach: Any) -> rlvitals.Reporter:
    """Attached, with ``clockwork`` in the place of real time between two beats."""
    reporter = rlvitals.attach(trainer, **attach)
    callback = next(c for c in trainer.callback_handler.callbacks if isinstance(c, VitalsCallback))
    callback._wait = clockwork
    trainer.callback_handler.callbacks.remove(callback)
    trainer.add_callback(
        tiny.AtStepEnd(
            lambda step: reporter.control.offer([command(CommandKind.PAUSE, name="p")] if step == 2 else [])
        )
    )
    trainer.add_callback(callback)
    return reporter


def test_a_pause_holds_before_the_next_step_until_resume_arrives(make: MakeTrainer) -> None:
    trainer = make()
    reached: list[int] = []

    def beat(count: int) -> None:
        reached.append(trainer.state.global_step)
        if count == 5:
            reporter.control.offer([command(CommandKind.RESUME, name="r")])

    clockwork = Clockwork(beat)
    reporter = paused(trainer, clockwork)
    trainer.train()
    assert (clockwork.beats, set(reached)) == (5, {2})
    assert trainer.state.global_step == 4
    assert [(o.command_id, o.state) for o in outcomes(reporter)] == [
        ("p", CommandState.APPLIED),
        ("r", CommandState.APPLIED),
    ]
    assert {"pause_released_by": "resume"} in notes(reporter)


def test_a_stop_during_a_pause_ends_training_one_step_later(make: MakeTrainer) -> None:
    trainer = make(max_steps=50)
    clockwork = Clockwork(lambda beat: reporter.control.offer([command(CommandKind.STOP, name="s")]))
    reporter = paused(trainer, clockwork)
    trainer.train()
    assert trainer.state.global_step == 3


def test_a_pause_ends_by_itself_when_the_service_is_silent(make: MakeTrainer) -> None:
    trainer = make()
    reporter = paused(trainer, Clockwork(), limits=ControlLimits(fail_open_s=1e-6))
    trainer.train()
    assert trainer.state.global_step == 4
    assert {"pause_released_by": "service silent"} in notes(reporter)


def test_a_pause_has_a_longest_length(make: MakeTrainer) -> None:
    trainer = make()
    reporter = paused(trainer, Clockwork(), limits=ControlLimits(longest_pause_s=1e-6))
    trainer.train()
    assert {"pause_released_by": "longest pause"} in notes(reporter)


def test_a_resumed_training_gets_its_changed_coefficient_back(make: MakeTrainer, tmp_path: Path) -> None:
    settings = {"beta": 0.5, "save_strategy": "steps", "save_steps": 3}
    offered(make(**settings), {2: command(CommandKind.SET_KL_COEF, 0.1)})
    trainer = make(**settings, max_steps=5)
    assert trainer.beta == 0.5
    reporter = rlvitals.attach(trainer)
    trainer.train(resume_from_checkpoint=str(tmp_path / "output" / "checkpoint-3"))
    assert trainer.beta == 0.1
    assert {step.values["kl.coef"] for step in tiny.steps(reporter)} == {0.1}
    assert {"restored": "kl_coef", "before": 0.5, "after": 0.1} in notes(reporter)


def test_a_coefficient_that_the_user_configured_anew_is_not_overruled(make: MakeTrainer, tmp_path: Path) -> None:
    settings = {"save_strategy": "steps", "save_steps": 3}
    offered(make(**settings, beta=0.5), {2: command(CommandKind.SET_KL_COEF, 0.1)})
    trainer = make(**settings, beta=0.3, max_steps=5)
    rlvitals.attach(trainer)
    trainer.train(resume_from_checkpoint=str(tmp_path / "output" / "checkpoint-3"))
    assert trainer.beta == 0.3


def test_restoring_callbacks_from_a_checkpoint_does_not_rebuild_ours(make: MakeTrainer, tmp_path: Path) -> None:
    settings = {"save_strategy": "steps", "save_steps": 3, "restore_callback_states_from_checkpoint": True}
    offered(make(**settings), {2: command(CommandKind.SET_KL_COEF, 0.1)})
    trainer = make(**settings, max_steps=5)
    reporter = rlvitals.attach(trainer)
    trainer.train(resume_from_checkpoint=str(tmp_path / "output" / "checkpoint-3"))
    assert [step.step for step in tiny.steps(reporter)] == [4, 5]
    assert STATE_KEY in trainer.state.stateful_callbacks
