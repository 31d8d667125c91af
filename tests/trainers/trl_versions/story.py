"""One trainer of the TRL of this environment, lived through: prints a JSON line with all that happened.

``python -m tests.trainers.trl_versions.story grpo FOLDER``
"""

from __future__ import annotations

import json
import math
import os
import sys
import warnings
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import torch
import trl
from datasets import Dataset
from transformers import AutoTokenizer, Qwen2ForCausalLM

import rlvitals
from rlvitals.contract.command import Command, CommandKind, Outcome
from rlvitals.contract.metrics import BY_NAME
from rlvitals.contract.report import Event, EventKind
from rlvitals.control import ControlLimits
from rlvitals.integrations.trl.callback import VitalsCallback
from rlvitals.integrations.trl.session import Session
from tests.client.integrations import tiny
from tests.trainers.trl_versions.recorder import Recorder

STEPS = 4
HOOKS = (
    "logprobs_computed",
    "loss_computed",
    "gradient_measured",
    "rewards_calculated",
    "generation_begins",
    "generation_done",
    "train_begins",
    "step_begins",
    "_finish",
    "logged",
    "train_ends",
)


class Story:
    """``kind`` is grpo or rloo; each method is one training."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind, self.folder = kind, folder
        self.policy = tiny.save_policy(folder / "policy")
        fields = getattr(trl, f"{kind.upper()}Config").__dataclass_fields__
        self.reused = {"num_iterations": 2} if "num_iterations" in fields else {}

    def make(self, output: str = "output", **settings: Any) -> Any:
        name = self.kind.upper()
        defaults: dict[str, Any] = {
            "output_dir": str(self.folder / output),
            "max_completion_length": tiny.CAP,
            "beta": 0.05,
            "learning_rate": 1e-2,
            "per_device_train_batch_size": 4,
            "gradient_accumulation_steps": 2,
            "num_generations": 4,
            "lr_scheduler_type": "constant",
            "max_steps": STEPS,
            "save_strategy": "no",
            "report_to": [],
            "use_cpu": True,
            "bf16": False,
            "gradient_checkpointing": False,
            "disable_tqdm": True,
            "logging_steps": 1,
            "seed": 5,
        }
        return getattr(trl, f"{name}Trainer")(
            model=Qwen2ForCausalLM.from_pretrained(str(self.policy)),
            processing_class=AutoTokenizer.from_pretrained(str(self.policy)),
            reward_funcs=tiny.letters,
            args=getattr(trl, f"{name}Config")(**defaults | settings),
            train_dataset=Dataset.from_dict({"prompt": tiny.PROMPTS}),
        )

    def unwatched(self) -> str:
        trainer = self.make(**self.reused)
        trainer.train()
        return tiny.weights_hash(trainer)

    def watched(self) -> dict[str, Any]:
        trainer = self.make(**self.reused)
        recorder = Recorder(trainer)
        reporter = rlvitals.attach(trainer, kl_gradient_every=2)
        trainer.train()
        found, steps = tiny.records(reporter), tiny.steps(reporter)
        tables = [event for event in found if isinstance(event, Event) and event.kind is EventKind.HOOK]
        return {
            "weights": tiny.weights_hash(trainer),
            "trained": trainer.state.global_step,
            "steps": [step.step for step in steps],
            "unsaid": [sorted(set(BY_NAME) - set(step.values) - set(step.missing)) for step in steps],
            "both": [sorted(set(step.values) & set(step.missing)) for step in steps],
            "values": [dict(step.values) for step in steps],
            "missing": [dict(step.missing) for step in steps],
            "by_hand": [recorder.figures(step) for step in range(1, STEPS + 1)],
            "logged": [entry["loss"] for entry in trainer.state.log_history if "loss" in entry],
            "hooks": {row["hook"]: row["state"] for row in tables[-1].payload["hooks"]},
            "why": {row["hook"]: row["why"] for row in tables[-1].payload["hooks"]},
            "texts": sum(type(record).__name__ == "Text" for record in found),
            "config": {name: reporter.run.config.get(name) for name in ("kl_estimator", "kl_in", "kl_coef")},
        }

    def penalised(self) -> dict[str, Any]:
        """KL in the reward, in whole batches so that the generation is what the loss sees."""
        trainer = self.make(per_device_train_batch_size=8, gradient_accumulation_steps=1, beta=0.3)
        recorder = Recorder(trainer)
        reporter = rlvitals.attach(trainer)
        trainer.train()
        last = tiny.steps(reporter)[-1]
        return {"values": dict(last.values), "by_hand": recorder.reward_kl(STEPS), "missing": dict(last.missing)}

    def poisoned(self) -> dict[str, list[str]]:
        trainer = self.make()
        original = trainer.compute_loss

        def spoil(*args: Any, **kwargs: Any) -> torch.Tensor:
            loss: torch.Tensor = original(*args, **kwargs)
            return loss + math.nan if trainer.state.global_step == 2 else loss  # the gradient stays finite

        trainer.compute_loss = spoil
        reporter = rlvitals.attach(trainer)
        trainer.train()
        return {
            "told": [str(step.values["policy.loss"]) for step in tiny.steps(reporter)],
            "logged": [str(entry["loss"]) for entry in trainer.state.log_history if "loss" in entry],
        }

    def raising(self) -> dict[str, Any]:
        """Every hook of ours raises; all that is ours is put back afterwards."""
        called: set[str] = set()
        kept = {name: getattr(Session, name) for name in HOOKS}

        def failing(name: str) -> Callable[..., None]:
            def fail(*_: Any, **__: Any) -> None:
                called.add(name)
                raise RuntimeError(name)

            return fail

        for name in HOOKS:
            setattr(Session, name, failing(name))
        trainer = self.make(**self.reused)
        rlvitals.attach(trainer)
        trainer.train()
        for name, method in kept.items():
            setattr(Session, name, method)
        return {"weights": tiny.weights_hash(trainer), "called": sorted(called)}

    def steered(self) -> dict[str, Any]:
        """KL at 1, the rate and a pause at 2, a checkpoint at 3, stop at 5."""
        at = {
            1: [command("kl", CommandKind.SET_KL_COEF, 0.02)],
            2: [command("lr", CommandKind.SCALE_LR, 0.5), command("p", CommandKind.PAUSE)],
            3: [command("c", CommandKind.CHECKPOINT)],
            5: [command("s", CommandKind.STOP)],
        }
        trainer = self.make("steered", max_steps=50)
        reporter, beats = train_under(trainer, at)
        found, steps = tiny.records(reporter), tiny.steps(reporter)
        return {
            "beta": trainer.beta,
            "steps": trainer.state.global_step,
            "beats": beats,
            "kl": [step.values["kl.coef"] for step in steps],
            "lr": [step.values["policy.learning_rate"] for step in steps],
            "outcomes": [
                [o.command_id, o.state.value, o.before, o.after] for o in found if isinstance(o, Outcome)
            ],
            "checkpoints": sorted(path.name for path in (self.folder / "steered").glob("checkpoint-*")),
            "can": dict(reporter.run.capabilities),
        }

    def resumed(self) -> dict[str, Any]:
        trainer = self.make("steered", max_steps=5)
        reporter = rlvitals.attach(trainer)
        configured = trainer.beta
        trainer.train(resume_from_checkpoint=str(self.folder / "steered" / "checkpoint-3"))
        return {
            "configured": configured,
            "beta": trainer.beta,
            "steps": [step.step for step in tiny.steps(reporter)],
        }


def train_under(trainer: Any, at: Mapping[int, list[Command]]) -> tuple[rlvitals.Reporter, list[int]]:
    """Attaches and trains with commands by step: the reporter, and the step of each beat of a pause, which ends at
    its third."""
    reporters: list[rlvitals.Reporter] = []
    trainer.add_callback(tiny.AtStepEnd(lambda step: reporters[0].control.offer(at.get(step, []))))
    reporters.append(rlvitals.attach(trainer, limits=ControlLimits(cooldown_steps=0)))
    callback = next(c for c in trainer.callback_handler.callbacks if isinstance(c, VitalsCallback))
    beats: list[int] = []

    def beat(seconds: float) -> None:
        beats.append(trainer.state.global_step)
        if len(beats) == 3:
            reporters[0].control.offer([command("r", CommandKind.RESUME)])

    callback._wait = beat
    trainer.train()
    return reporters[0], beats


def command(name: str, kind: CommandKind, argument: float | None = None) -> Command:
    until = datetime.now(timezone.utc) + timedelta(hours=1)
    return Command(id=name, kind=kind, argument=argument, expires_at=until)


def main(kind: str, folder: Path) -> None:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    story = Story(kind, folder)
    parts = ["unwatched", "watched", "poisoned", "steered", "resumed", "raising"]
    if kind == "rloo":
        parts.insert(2, "penalised")
    found: dict[str, Any] = {"version": trl.__version__}
    for part in parts:
        os.environ["RLVITALS_RAISE"] = "0" if part == "raising" else "1"
        found[part] = getattr(story, part)()
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
