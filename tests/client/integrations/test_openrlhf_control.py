"""What people ask of an OpenRLHF run: done by its controller between two steps, or refused with a reason."""

from __future__ import annotations

import math
import threading
from collections import deque
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rlvitals.contract.command import Command, CommandKind, CommandState, Outcome
from rlvitals.contract.report import Event, EventKind, Phase
from rlvitals.integrations.openrlhf import controller, generator
from rlvitals.integrations.openrlhf.control import STATE
from tests.client.integrations import tiny
from tests.client.integrations.openrlhf import Trainer, put_ray


@pytest.fixture(autouse=True)
def offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLVITALS_MODE", "offline")
    monkeypatch.setenv("RLVITALS_DIR", str(tmp_path / "spool"))
    put_ray(monkeypatch)


def trained(trainer: Trainer, asked: dict[int, tuple[CommandKind, float | None]]) -> list[Any]:
    """Trains to the end, with a command before each of some boundaries; all that was journalled."""
    watch = controller.begin(trainer, {})
    assert watch is not None

    def ask(step: int) -> None:
        if step in asked:
            kind, argument = asked[step]
            expires = datetime.now(timezone.utc) + timedelta(minutes=5)
            command = Command(id=f"c{step}", kind=kind, argument=argument, expires_at=expires)
            watch.vitals.reporter.control.offer([command])

    trainer.at_step = ask
    assert trainer.fit() == "done"
    controller.end(watch, Phase.FINISHED)
    return tiny.records(watch.vitals.reporter)


def outcomes(found: list[Any]) -> list[Outcome]:
    return [record for record in found if isinstance(record, Outcome)]


def notes(found: list[Any], key: str) -> list[Any]:
    events = [r for r in found if isinstance(r, Event) and r.kind is EventKind.NOTE and key in r.payload]
    return [event.payload[key] for event in events]


def test_a_new_coefficient_reaches_every_rank_with_the_next_step_and_is_read_back_there() -> None:
    trainer = Trainer(steps=4)
    found = trained(trainer, {2: (CommandKind.SET_KL_COEF, 0.2)})
    (outcome,) = outcomes(found)
    assert (outcome.state, outcome.before, outcome.after) == (CommandState.APPLIED, 0.1, 0.2)
    assert [rank.trainer.coefficients for rank in trainer.ranks] == [[0.1, 0.1, 0.2, 0.2]] * 2
    assert notes(found, "kl_coef_on_ranks") == [{"0": [0.2], "1": [0.2]}]
    assert [step.values["kl.coef"] for step in tiny.steps_of(found)] == [0.1, 0.1, 0.2, 0.2]


def test_without_a_reference_another_coefficient_is_refused_with_the_reason() -> None:
    def drop(made: Any) -> None:
        made.base_action_log_probs = None

    trainer = Trainer(change=drop, algo__kl__init_coef=0.0, algo__kl__use_loss=False)
    (outcome,) = outcomes(trained(trainer, {1: (CommandKind.SET_KL_COEF, 0.05)}))
    assert outcome.state is CommandState.REFUSED
    assert "no reference model" in outcome.reason
    assert trainer.kl_ctl.value == 0.0


def test_where_a_controller_of_its_own_moves_the_coefficient_it_is_refused() -> None:
    trainer = Trainer()
    trainer.kl_ctl = SimpleNamespace(value=0.1, target=6.0)
    (outcome,) = outcomes(trained(trainer, {1: (CommandKind.SET_KL_COEF, 0.2)}))
    assert outcome.state is CommandState.REFUSED
    assert "adaptive controller" in outcome.reason


def test_a_checkpoint_is_the_trainers_own_and_its_schedules_stay() -> None:
    trainer = Trainer()
    found = trained(trainer, {2: (CommandKind.CHECKPOINT, None)})
    assert set(trainer.saved) == {2}
    assert trainer.logged == [1, 2, 3]
    assert trainer.args.ckpt.save_steps == math.inf
    assert trainer.args.logger.logging_steps == 1
    (event,) = [r for r in found if isinstance(r, Event) and r.kind is EventKind.CHECKPOINT]
    assert event.payload["folder"] == "ckpt/_actor/global_step2"


def test_what_the_trainers_own_schedule_has_just_saved_is_not_saved_twice() -> None:
    trainer = Trainer(ckpt__save_steps=2)
    kept: list[int] = []
    trainer.saved = SimpleNamespace(__setitem__=kept.append)  # type: ignore[assignment]

    class Saved(dict[int, Any]):
        def __setitem__(self, step: int, states: Any) -> None:
            kept.append(step)
            super().__setitem__(step, states)

    trainer.saved = Saved()
    trained(trainer, {2: (CommandKind.CHECKPOINT, None)})
    assert kept == [2]


def test_where_nothing_would_be_written_a_checkpoint_is_refused() -> None:
    trainer = Trainer(ckpt__disable_ds=True)
    (outcome,) = outcomes(trained(trainer, {1: (CommandKind.CHECKPOINT, None)}))
    assert outcome.state is CommandState.REFUSED
    assert "would write nothing" in outcome.reason


def test_a_stop_saves_and_no_further_step_is_trained() -> None:
    trainer = Trainer(steps=9)
    (outcome,) = outcomes(trained(trainer, {2: (CommandKind.STOP, None)}))
    assert outcome.state is CommandState.APPLIED
    assert trainer.ran == [1, 2]
    assert set(trainer.saved) == {2}


def test_the_learning_rate_is_scaled_on_every_rank() -> None:
    trainer = Trainer()
    (outcome,) = outcomes(trained(trainer, {1: (CommandKind.SCALE_LR, 0.5)}))
    assert (outcome.state, outcome.before, outcome.after) == (CommandState.APPLIED, 0.5, 0.25)
    assert [rank.actor_optim.param_groups[0]["lr"] for rank in trainer.ranks] == [0.25, 0.25]
    assert [rank.actor_scheduler.base_lrs for rank in trainer.ranks] == [[0.25], [0.25]]


def test_a_pause_holds_the_controller_until_it_is_released() -> None:
    trainer = Trainer()
    watch = controller.begin(trainer, {})
    assert watch is not None
    control, waits = watch.vitals.reporter.control, 0
    expires = datetime.now(timezone.utc) + timedelta(minutes=5)

    def command(name: str, kind: CommandKind) -> Command:
        return Command(id=name, kind=kind, expires_at=expires)

    def wait(seconds: float) -> None:
        nonlocal waits
        waits += 1
        assert trainer.ran == [1]
        if waits == 3:
            control.offer([command("resume", CommandKind.RESUME)])

    watch.vitals._commands.wait = wait
    trainer.at_step = lambda step: control.offer([command("pause", CommandKind.PAUSE)]) if step == 1 else None
    trainer.fit()
    assert waits == 3
    assert trainer.ran == [1, 2, 3]
    controller.end(watch, Phase.FINISHED)


@pytest.mark.parametrize(
    ("began_with", "in_force"), [(0.1, 0.3), (0.05, 0.05)], ids=["the same job", "a new value"]
)
def test_after_a_resume_the_coefficient_of_the_checkpoint_is_in_force_unless_the_job_says_another(
    began_with: float, in_force: float
) -> None:
    trainer = Trainer(algo__kl__init_coef=began_with, ckpt__load_enable=True)
    for rank in trainer.ranks:
        rank.checkpoint_states = {"global_step": 5, STATE: {"kl_coef": 0.3, "init_coef": 0.1}}
    found = trained(trainer, {})
    assert [rank.trainer.coefficients[0] for rank in trainer.ranks] == [in_force] * 2
    assert notes(found, "kl_coef_restored") == ([0.3] if in_force == 0.3 else [])


def test_a_checkpoint_keeps_the_coefficient_in_force() -> None:
    trainer = Trainer(steps=4, ckpt__save_steps=1)
    trained(trainer, {2: (CommandKind.SET_KL_COEF, 0.2)})
    assert [trainer.saved[step][STATE]["kl_coef"] for step in (2, 3)] == [0.1, 0.2]


class Slots:
    def __init__(self) -> None:
        self.given: list[int] = []

    def put(self, step: int, block: bool = True) -> None:
        self.given.append(step)


def test_an_asynchronous_generator_is_told_and_what_it_has_sampled_is_dropped() -> None:
    queue = deque(["payload", "payload", "done"])
    trainer = SimpleNamespace(rollout_queue=SimpleNamespace(get=lambda block=True: queue.popleft()))
    trainer.rollout_slots = Slots()
    actor = SimpleNamespace(
        samples_generator=SimpleNamespace(generate_samples=lambda **_: (["s"], None, 1, False))
    )
    generator.listen(actor)
    assert actor.samples_generator.generate_samples()[0] == ["s"]
    assert generator.cannot_stop(trainer) == ""
    generator.stop(trainer, 7)
    assert actor.samples_generator.generate_samples() == ([], None, 0, True)
    assert trainer.rollout_queue.get(block=True) == "done"
    assert trainer.rollout_slots.given == [7, 7]


def test_a_stopped_generator_leaves_its_loop_at_once_whatever_number_of_episodes_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With its lock given back, as the loop's own ``finally`` does, and the word that the trainer waits for."""
    put: list[Any] = []
    actor = SimpleNamespace(
        samples_generator=SimpleNamespace(generate_samples=lambda: (["s"], None, 1, True)),
        rollout_queue=SimpleNamespace(put=lambda payload, block: put.append(payload)),
    )
    generator.listen(actor)
    answers = iter([False, False, True])
    monkeypatch.setattr(generator, "stopped", lambda: next(answers))
    released = []

    def fit() -> None:
        for _ in range(100_000):
            try:
                samples, *_ = actor.samples_generator.generate_samples()
            finally:
                released.append(True)
            put.append(samples)
        put.append("done")

    generator.leaving(actor, fit)
    assert put == [["s"], ["s"], "done"]
    assert len(released) == 3


def test_a_generators_own_error_stays_its_own() -> None:
    def fit() -> None:
        raise ValueError("the engine is gone")

    with pytest.raises(ValueError, match="engine is gone"):
        generator.leaving(SimpleNamespace(), fit)


def test_a_release_whose_sampling_cannot_be_ended_says_so() -> None:
    assert "cannot be ended" in generator.cannot_stop(SimpleNamespace(rollout_queue=object()))
    assert "cannot be ended" in generator.cannot_stop(SimpleNamespace())


def test_ranks_that_do_not_answer_cost_the_step_its_ratios_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RLVITALS_RAISE", "0")
    trainer, gone = Trainer(), threading.Event()
    watch = controller.begin(trainer, {})
    assert watch is not None
    ask = watch.ask

    def answer(*told: Any) -> list[Any]:
        if gone.is_set():
            raise TimeoutError("a rank is gone")
        return ask(*told)

    monkeypatch.setattr(watch, "ask", answer)
    trainer.at_step = lambda step: gone.set() if step == 2 else None
    trainer.fit()
    controller.end(watch, Phase.FINISHED)
    found = tiny.steps(watch.vitals.reporter)
    assert "ratio.max" in found[0].values
    assert "did not answer" in found[1].missing["ratio.max"]
    assert found[1].values["reward.mean"] == pytest.approx(found[1].values["reward.mean"])
