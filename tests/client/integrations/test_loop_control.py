"""What is asked of a hand-written loop: done by its own handlers where a step ends, or refused with the reason."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
import torch

import rlvitals
from rlvitals.contract.command import Command, CommandKind, Knob, Outcome
from rlvitals.contract.report import Event, EventKind
from rlvitals.integrations.loop import Vitals, commands
from rlvitals.verdict import ControlLimits
from tests.client.integrations import grpo, tiny


@pytest.fixture(autouse=True)
def offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLVITALS_MODE", "offline")
    monkeypatch.setenv("RLVITALS_DIR", str(tmp_path / "spool"))


def run(**arguments: Any) -> Vitals:
    return rlvitals.run(project="p", limits=ControlLimits(cooldown_steps=0), **arguments)


def ask(vitals: Vitals, kind: CommandKind, argument: float | None = None, name: str = "", knob: str = "") -> None:
    until = datetime.now(timezone.utc) + timedelta(hours=1)
    command = Command(id=name or kind.value, kind=kind, argument=argument, expires_at=until, knob=knob)
    vitals.reporter.control.offer([command])


def outcomes(vitals: Vitals) -> list[Outcome]:
    return [record for record in tiny.records(vitals.reporter) if isinstance(record, Outcome)]


def answer(vitals: Vitals) -> Outcome:
    vitals.step(7)
    return outcomes(vitals)[-1]


class Settings:
    """The loop's own."""

    beta = 0.1

    def set_beta(self, value: float) -> None:
        self.beta = value


def test_the_coefficient_is_set_by_the_loops_handler_and_read_back() -> None:
    settings = Settings()
    vitals = run(kl_coef=0.1)
    vitals.on("set_kl_coef", settings.set_beta, get=lambda: settings.beta)
    ask(vitals, CommandKind.SET_KL_COEF, 0.05)
    told = answer(vitals)
    assert (told.state.value, told.before, told.after, told.step) == ("applied", 0.1, 0.05, 7)
    assert settings.beta == 0.05
    vitals.step(8)
    assert [step.values["kl.coef"] for step in tiny.steps(vitals.reporter)] == [0.1, 0.05]


def test_a_knob_of_the_loops_own_is_told_turned_and_read_back() -> None:
    settings = Settings()
    vitals = run()
    assert "vitals.knob" in vitals.reporter.run.capabilities["set_knob"]
    vitals.knob("beta", settings.set_beta, get=lambda: settings.beta, low=0.0, high=1.0, max_change=0.2)
    assert vitals.reporter.run.capabilities["set_knob"] == ""
    assert vitals.reporter.run.knobs == {"beta": Knob(low=0.0, high=1.0, value=0.1, max_change=0.2)}
    ask(vitals, CommandKind.SET_KNOB, 0.3, knob="beta")
    told = answer(vitals)
    assert (told.state.value, told.before, told.after, settings.beta) == ("applied", 0.1, 0.3, 0.3)


def test_a_knob_whose_own_code_fails_is_refused_and_the_loop_goes_on() -> None:
    vitals = run()
    vitals.knob("beta", lambda value: 1 / 0, low=0.0, high=1.0, value=0.1)
    ask(vitals, CommandKind.SET_KNOB, 0.3, knob="beta")
    told = answer(vitals)
    assert (told.state.value, "ZeroDivisionError" in told.reason) == ("refused", True)


def test_a_knob_with_bounds_that_are_none_is_told_of_and_not_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RLVITALS_RAISE")
    vitals = run()
    vitals.knob("beta", lambda value: None, low=float("nan"), high=1.0)
    assert vitals.reporter.run.knobs == {}
    vitals.on("stop", lambda step: None)
    assert "vitals.knob" in vitals.reporter.run.capabilities["set_knob"]


def test_without_a_way_to_read_it_the_value_that_was_told_stands() -> None:
    vitals = run(kl_coef=0.1)
    vitals.on("set_kl_coef", lambda value: None)
    ask(vitals, CommandKind.SET_KL_COEF, 0.2)
    assert (answer(vitals).before, answer(vitals).after) == (0.1, 0.2)


def test_the_clients_bounds_are_factors_of_the_loops_own_value() -> None:
    settings = Settings()
    vitals = run(kl_coef=lambda: settings.beta)
    vitals.on("set_kl_coef", settings.set_beta)
    ask(vitals, CommandKind.SET_KL_COEF, 100.0)
    assert "bounds" in answer(vitals).reason
    assert settings.beta == 0.1


@pytest.mark.parametrize(
    ("kind", "argument", "reason"),
    [
        (CommandKind.SET_KL_COEF, 0.1, "no handler"),
        (CommandKind.CHECKPOINT, None, "no handler"),
        (CommandKind.SCALE_LR, 0.5, "no optimizer"),
    ],
)
def test_what_the_loop_cannot_do_is_refused_with_the_reason(
    kind: CommandKind, argument: float | None, reason: str
) -> None:
    vitals = run(kl_coef=0.1)
    ask(vitals, kind, argument)
    told = answer(vitals)
    assert told.state.value == "refused"
    assert reason in told.reason
    assert reason in vitals.reporter.run.capabilities[kind.value]


def test_a_coefficient_of_zero_stays_zero() -> None:
    vitals = run(kl_coef=0.0)
    vitals.on("set_kl_coef", lambda value: None)
    ask(vitals, CommandKind.SET_KL_COEF, 0.1)
    assert answer(vitals).reason == commands.COEFFICIENT_IS_ZERO


def test_a_handler_that_raises_refuses_and_training_goes_on() -> None:
    vitals = run(kl_coef=0.1)
    vitals.on("set_kl_coef", lambda value: 1 / 0)
    ask(vitals, CommandKind.SET_KL_COEF, 0.05)
    told = answer(vitals)
    assert told.state.value == "refused"
    assert "ZeroDivisionError" in told.reason


def test_the_learning_rate_and_its_schedule_are_scaled() -> None:
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.0)
    vitals = run(optimizer=optimizer, scheduler=scheduler)
    ask(vitals, CommandKind.SCALE_LR, 0.5)
    told = answer(vitals)
    assert (told.before, told.after) == (0.1, 0.05)
    optimizer.step()
    scheduler.step()
    assert optimizer.param_groups[0]["lr"] == 0.05


def test_a_checkpoint_is_the_loops_own_and_is_told_with_its_path() -> None:
    vitals = run()
    vitals.on("checkpoint", lambda step: f"out/{step}")
    ask(vitals, CommandKind.CHECKPOINT)
    assert answer(vitals).state.value == "applied"
    saved = [r for r in tiny.records(vitals.reporter) if isinstance(r, Event) and r.kind is EventKind.CHECKPOINT]
    assert [(event.step, event.payload["folder"]) for event in saved] == [(7, "out/7")]


@pytest.mark.parametrize("fails", [False, True])
def test_a_stop_saves_first_and_stops_even_where_that_fails(fails: bool) -> None:
    saved: list[int] = []
    vitals = run()

    def save(step: int) -> None:
        saved.append(step)
        if fails:
            raise OSError("disk full")

    vitals.on("checkpoint", save)
    assert not vitals.should_stop
    ask(vitals, CommandKind.STOP)
    assert answer(vitals).state.value == "applied"
    assert vitals.should_stop
    assert saved == [7]


def test_the_loop_leaves_at_the_step_at_which_it_was_asked_to_stop() -> None:
    loop = grpo.Loop(steps=5)
    with run(**loop.facts()) as vitals:
        loop.train(vitals, on_step=lambda step: ask(vitals, CommandKind.STOP) if step == 2 else None)
    assert [step.step for step in tiny.steps(vitals.reporter)] == [1, 2]


def test_a_pause_holds_inside_step_until_it_is_released_and_what_came_with_it_is_done() -> None:
    settings = Settings()
    vitals = run(kl_coef=0.1)
    vitals.on("set_kl_coef", settings.set_beta)
    beats: list[float] = []

    def wait(seconds: float) -> None:
        beats.append(seconds)
        if len(beats) == 3:
            ask(vitals, CommandKind.SET_KL_COEF, 0.05)
            ask(vitals, CommandKind.RESUME)

    vitals._commands.wait = wait
    ask(vitals, CommandKind.PAUSE)
    vitals.step(7)
    assert beats == [commands.BEAT_S] * 3
    assert settings.beta == 0.05
    assert [(o.command_id, o.state.value) for o in outcomes(vitals)] == [
        ("pause", "applied"),
        ("set_kl_coef", "applied"),
        ("resume", "applied"),
    ]
    notes = [r.payload for r in tiny.records(vitals.reporter) if isinstance(r, Event) and r.kind is EventKind.NOTE]
    assert notes == [{"pause_released_by": "resume"}]


def test_a_stop_ends_a_pause() -> None:
    vitals = run()
    vitals._commands.wait = lambda seconds: ask(vitals, CommandKind.STOP)
    ask(vitals, CommandKind.PAUSE)
    vitals.step(7)
    assert vitals.should_stop
