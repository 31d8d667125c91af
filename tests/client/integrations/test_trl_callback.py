"""`RLVitalsCallback` and ``report_to="rlvitals"``: what a trainer logs, for people who attach nothing."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import Dataset
from transformers import Trainer, TrainingArguments
from transformers.integrations import integration_utils

import rlvitals
from rlvitals import reporting
from rlvitals.contract.command import Command, CommandKind, Outcome
from rlvitals.contract.evaluation import is_evaluation
from rlvitals.contract.metrics import BY_NAME
from rlvitals.contract.report import Event, EventKind
from rlvitals.integrations.trl import facts
from rlvitals.integrations.trl.reporting import RLVitalsCallback
from rlvitals.integrations.trl.scalar_session import CALLBACK, NOT_NOW, ScalarSession
from rlvitals.verdict import ControlLimits
from tests.client.integrations import tiny
from tests.client.integrations.conftest import MakeTrainer

pytestmark = [
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]


def callback_of(trainer: Any) -> RLVitalsCallback:
    found: RLVitalsCallback = next(
        c for c in trainer.callback_handler.callbacks if isinstance(c, RLVitalsCallback)
    )
    return found


def reporter_of(trainer: Any) -> rlvitals.Reporter:
    reporter = callback_of(trainer).reporter
    assert reporter is not None
    return reporter


def test_a_callback_alone_tells_what_the_trainer_logs_and_why_there_is_no_more(make: MakeTrainer) -> None:
    plain = make(logging_steps=2)
    plain.train()
    watched = make(logging_steps=2)  # making a trainer sets the seeds
    watched.add_callback(rlvitals.RLVitalsCallback(config={"who": "me"}))
    watched.train()
    steps = tiny.steps(reporter_of(watched))
    assert [step.step for step in steps] == [1, 2, 3, 4]
    assert tiny.weights_hash(watched) == tiny.weights_hash(plain)
    logged = [entry for entry in watched.state.log_history if "reward" in entry]
    assert [step.values.get("reward.mean") for step in steps] == [
        None,
        logged[0]["reward"],
        None,
        logged[1]["reward"],
    ]
    assert steps[0].missing["reward.mean"] == CALLBACK
    assert steps[2].missing["reward.mean"] == NOT_NOW
    assert steps[3].missing["ratio.max"] == CALLBACK
    for step in steps:
        assert set(BY_NAME) == set(BY_NAME) & (set(step.values) | set(step.missing))
        assert not set(step.values) & set(step.missing)
        assert step.values["policy.learning_rate"] == 1e-2
        assert step.values["progress.step_time"] > 0
    assert "policy.loss" in steps[3].values, "the mean over the whole training is no step's loss"
    run = reporter_of(watched).run
    assert (run.config["who"], run.config["group_size"], run.framework) == ("me", 4, "trl")


def test_what_a_callback_cannot_do_is_refused_with_its_reason_and_the_rest_is_done(
    make: MakeTrainer, tmp_path: Path
) -> None:
    trainer = make(max_steps=50)
    at = {1: (CommandKind.SET_KL_COEF, 0.1), 2: (CommandKind.SCALE_LR, 0.5), 4: (CommandKind.STOP, None)}

    def offer(step: int) -> None:
        if step in at:
            kind, argument = at[step]
            until = datetime.now(timezone.utc) + timedelta(hours=1)
            command = Command(id=kind.value, kind=kind, argument=argument, expires_at=until)
            reporter_of(trainer).control.offer([command])

    trainer.add_callback(tiny.AtStepEnd(offer))
    trainer.add_callback(RLVitalsCallback(limits=ControlLimits(cooldown_steps=0)))
    trainer.train()
    outcomes = {o.command_id: o for o in tiny.records(reporter_of(trainer)) if isinstance(o, Outcome)}
    assert (outcomes["set_kl_coef"].state.value, outcomes["set_kl_coef"].reason) == ("refused", facts.NO_TRAINER)
    assert outcomes["scale_lr"].after == pytest.approx(5e-3)
    assert trainer.state.global_step == 4
    assert (tmp_path / "output" / "checkpoint-4").exists()


@pytest.mark.parametrize("attached_first", [True, False])
def test_attached_and_called_back_is_one_run(make: MakeTrainer, attached_first: bool) -> None:
    trainer = make(max_steps=2)
    if attached_first:
        reporter = rlvitals.attach(trainer)
        trainer.add_callback(RLVitalsCallback())
    else:
        trainer.add_callback(RLVitalsCallback())
        reporter = rlvitals.attach(trainer)
    trainer.train()
    assert callback_of(trainer).reporter is None
    assert [step.step for step in tiny.steps(reporter)] == [1, 2]


def test_reporting_to_rlvitals_is_a_name_that_transformers_knows(make: MakeTrainer) -> None:
    trainer = make(max_steps=2, logging_steps=1, report_to="rlvitals")
    trainer.train()
    steps = tiny.steps(reporter_of(trainer))
    assert [step.step for step in steps] == [1, 2]
    assert all("reward.mean" in step.values for step in steps)
    assert "rlvitals" not in integration_utils.get_available_reporting_integrations()


@pytest.fixture
def absent_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A module with a table of reporters, on disk and not loaded yet."""
    name = "rlvitals_test_reporters"
    (tmp_path / f"{name}.py").write_text("INTEGRATION_TO_CALLBACK = {'wandb': object}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(reporting, "MODULE", name)
    finders = list(sys.meta_path)
    yield name
    sys.meta_path[:] = finders
    sys.modules.pop(name, None)


def test_our_name_is_entered_when_the_table_is_loaded_later_and_the_finder_goes(
    absent_module: str,
) -> None:
    before = list(sys.meta_path)
    reporting.register()
    reporting.register()
    assert len(sys.meta_path) == len(before) + 1
    module = __import__(absent_module)
    assert {"wandb": object, "rlvitals": reporting.Callback} == module.INTEGRATION_TO_CALLBACK
    assert sys.meta_path == before
    assert type(module.__spec__.loader).__name__ == "SourceFileLoader"


class Regression(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.line = torch.nn.Linear(2, 1)

    def forward(self, x: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"loss": (self.line(x)[:, 0] - labels).square().mean()}


def test_any_trainer_of_transformers_may_be_watched_by_the_callback(make: MakeTrainer, tmp_path: Path) -> None:
    torch.manual_seed(1)
    arguments = TrainingArguments(
        output_dir=str(tmp_path),
        use_cpu=True,
        max_steps=3,
        logging_steps=1,
        save_strategy="no",
        eval_strategy="steps",
        eval_steps=2,
        disable_tqdm=True,
        report_to=["rlvitals"],
    )
    rows = Dataset.from_dict({"x": [[0.1, 0.2]] * 8, "labels": [0.5] * 8})
    trainer = Trainer(model=Regression(), args=arguments, train_dataset=rows, eval_dataset=rows)
    trainer.train()
    found = tiny.records(reporter_of(trainer))
    steps = tiny.steps_of(found)
    steps = [step for step in steps if not is_evaluation(step.values)]
    assert [step.step for step in steps] == [1, 2, 3]
    assert all(step.values["policy.loss"] > 0 and step.values["gradient.norm"] > 0 for step in steps)
    evaluations = [step for step in tiny.steps_of(found) if is_evaluation(step.values)]
    assert [step.step for step in evaluations] == [2, 3], "and at the end"
    assert all(step.values["eval_loss"] > 0 for step in evaluations)
    assert reporter_of(trainer).run.framework == "transformers"
    hooks = [event for event in found if isinstance(event, Event) and event.kind is EventKind.HOOK]
    rows_told: Any = hooks[-1].payload["hooks"]
    assert {row["hook"]: row["state"] for row in rows_told}["log"] == "seen"
    assert all(row["optional"] for row in rows_told if row["state"] == "absent"), "no fault of anybody's"


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_logged_number_that_is_not_finite_stays_what_it_is_and_one_that_is_none_is_missing(
    make: MakeTrainer, value: float
) -> None:
    reporter = rlvitals.init()
    session = ScalarSession(reporter, reason=CALLBACK)
    session.logged(1, {"loss": value, "entropy": None, "kl": "0.1", "grad_norm": True})
    session.step_ends(1)
    session.settle()
    (step,) = tiny.steps(reporter)
    assert repr(step.values["policy.loss"]) == repr(value)
    assert not {"policy.entropy", "kl.k3", "gradient.norm"} & set(step.values)
    assert step.missing["policy.entropy"] == CALLBACK
