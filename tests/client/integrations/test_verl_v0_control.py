"""What is asked of verl's V0 trainers: done between two steps and read back, or refused with the reason."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from rlvitals.contract.command import CommandKind, Outcome
from rlvitals.contract.report import Event
from rlvitals.control import ControlLimits
from rlvitals.integrations.loop.commands import Later
from rlvitals.integrations.steering import Refused
from rlvitals.integrations.verl import legacy_control
from rlvitals.integrations.verl import ranks_of_workers as ranks
from rlvitals.integrations.verl.session import session_of
from tests.client.integrations import tiny
from tests.client.integrations.test_loop_control import ask
from tests.client.integrations.verl_v0_shaped import Trainer, proto, steps, tapped


@pytest.fixture(autouse=True)
def offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLVITALS_MODE", "offline")
    monkeypatch.setenv("RLVITALS_DIR", str(tmp_path / "spool"))


@pytest.fixture
def tracking() -> type:
    return tapped()


def answers(trainer: Trainer) -> dict[str, Outcome]:
    found = tiny.records(session_of(trainer).reporter)
    return {r.command_id: r for r in found if isinstance(r, Outcome)}


def asking(*commands: tuple[int, CommandKind, float | None]) -> Any:
    """Asks at the begin of a step, which its log then takes."""

    def ask_now(trainer: Trainer) -> None:
        session = session_of(trainer)
        session.reporter.control.limits = ControlLimits(cooldown_steps=0)
        for step, kind, argument in commands:
            if step == trainer.global_steps:
                ask(session.vitals, kind, argument)

    return ask_now


def test_a_pause_holds_the_driver_until_somebody_resumes(tracking: type) -> None:
    trainer = Trainer(tracking, [proto(), proto()])
    beats: list[float] = []

    def before(trainer: Trainer) -> None:
        session = session_of(trainer)
        session.vitals._commands.wait = lambda s: (beats.append(s), ask(session.vitals, CommandKind.RESUME))
        asking((1, CommandKind.PAUSE, None))(trainer)

    trainer.fit(before)
    assert len(beats) == 1
    assert answers(trainer)["pause"].state.value == "applied"
    assert [step.step for step in steps(trainer)] == [1, 2]


def test_the_rewards_coefficient_is_the_controllers_and_a_loss_elsewhere_cannot_be_reached(tracking: type) -> None:
    trainer = Trainer(tracking, [proto(), proto()])
    trainer.fit(asking((1, CommandKind.SET_KL_COEF, 0.02), (1, CommandKind.SCALE_LR, 0.5)))
    assert trainer.kl_ctrl_in_reward.value == 0.02
    told = answers(trainer)
    assert (told["set_kl_coef"].before, told["set_kl_coef"].after) == (0.01, 0.02)
    assert "no workers" in told["scale_lr"].reason


def test_a_stop_is_the_next_step_and_a_checkpoint_is_written_at_once(tracking: type) -> None:
    trainer = Trainer(tracking, [proto()] * 9)
    trainer.fit(asking((3, CommandKind.STOP, None)))
    assert trainer.total_training_steps == 4
    assert trainer.saved == [3]
    folders = [r.payload for r in tiny.records(session_of(trainer).reporter) if isinstance(r, Event)]
    assert [f["folder"] for f in folders if "folder" in f] == ["/ck/global_step_3"]


def test_beside_an_engine_that_is_awake_the_checkpoint_comes_with_the_next_step(tracking: type) -> None:
    trainer = Trainer(tracking, [])
    trainer.checkpoint_manager = None  # type: ignore[attr-defined]
    trainer.config.trainer.save_freq = 50
    checkpoints = legacy_control.Checkpoints(trainer)
    assert checkpoints.save(3) == Later(4)
    assert checkpoints.save(3) == Later(4)
    assert (trainer.config.trainer.save_freq, trainer.saved) == (1, [])
    checkpoints.step_ends()
    assert trainer.config.trainer.save_freq == 50


def test_weights_that_are_not_finite_are_not_saved(tracking: type) -> None:
    def refuse(step: int) -> None:
        raise Refused(f"NaN at step {step}")

    trainer = Trainer(tracking, [])
    with pytest.raises(Refused, match="NaN at step 3"):
        legacy_control.Checkpoints(trainer, refuse).save(3)
    assert trainer.saved == []


class FakeProto:
    """A DataProto of numbers, as ranks get and give it."""

    def __init__(self, batch: dict[str, Tensor]) -> None:
        self.batch = batch

    from_dict = classmethod(lambda cls, tensors: cls(tensors))


def rank(value: float) -> Any:
    config = SimpleNamespace(kl_loss_coef=value)
    return SimpleNamespace(actor=SimpleNamespace(config=config))


@pytest.fixture
def group(monkeypatch: pytest.MonkeyPatch) -> Any:
    module = ModuleType("verl")
    module.DataProto = FakeProto  # type: ignore[attr-defined]
    monkeypatch.setitem(__import__("sys").modules, "verl", module)
    workers = [rank(0.1), rank(0.1)]

    def execute(function: Any, data: FakeProto) -> FakeProto:
        rows = data.batch["value"]
        found = [function(one, FakeProto({"value": rows[n : n + 1]})) for n, one in enumerate(workers)]
        return FakeProto({"value": torch.cat([one.batch["value"] for one in found])})

    return SimpleNamespace(world_size=2, workers=workers, execute_with_func_generator=execute)


def test_a_coefficient_is_read_back_from_every_rank(group: Any) -> None:
    session = SimpleNamespace(kl_coef=0.1)
    legacy_control._set_in_loss(session, group, 0.25)  # type: ignore[arg-type]
    assert session.kl_coef == 0.25
    assert ranks.on_each_rank(group, ranks.read_kl) == [0.25, 0.25]


def test_ranks_that_do_not_agree_or_have_no_such_loss_are_a_reason(group: Any) -> None:
    with pytest.raises(Refused, match="do not agree"):
        legacy_control._same([0.1, 0.2], "")
    group.workers[1] = SimpleNamespace(actor=None)
    with pytest.raises(Refused, match="no coefficient"):
        legacy_control._set_in_loss(SimpleNamespace(kl_coef=0.1), group, 0.25)  # type: ignore[arg-type]
