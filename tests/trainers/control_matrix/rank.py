"""One rank that lives through a row of runs: ``python -m tests.trainers.control_matrix.rank FOLDER MATRIX.json``.

Each run is trained twice: under commands, and by hand without us, with the same values at the same steps. What
this rank ended with goes into ``FOLDER/<run>.rank-<rank>.json``.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from transformers import TrainerCallback

import rlvitals
from rlvitals import link, sender
from rlvitals.contract.command import CommandState, Outcome
from rlvitals.contract.report import Event
from rlvitals.follow import Taken
from tests.client.integrations import tiny
from tests.trainers.control_matrix.gate import Gate
from tests.trainers.control_matrix.plan import BETA, KNOB, NORM, RATE, STEPS, TURNED

TIMEOUT = timedelta(seconds=180)
FLUSH_S = 60.0
HEARTBEAT_S = 0.2
"""What stands in a moment sends nothing else by which a command could come."""
WHERE = {"rollout": "_generate", "update": "compute_loss", "eval": "evaluate", "checkpoint": "_save_checkpoint"}
"""The trainer's own method in which a command finds it, by the moment's name."""


class Moments(TrainerCallback):
    """Has the trainer evaluate, or save, after the steps at which a command arrives in that."""

    def __init__(self, moment: str, steps: Sequence[int]) -> None:
        self._moment, self._steps = moment, frozenset(steps)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.global_step in self._steps:
            control.should_evaluate = control.should_evaluate or self._moment == "eval"
            control.should_save = control.should_save or self._moment == "checkpoint"


class Hand(TrainerCallback):
    """What a person would write into a training script: values at steps, and nothing of ours."""

    def __init__(self, trainer: Any, given: Sequence[Sequence[Any]]) -> None:
        self._trainer, self._given = trainer, given

    def on_step_end(self, args: Any, state: Any, control: Any, **loop: Any) -> None:
        for verb, step, value in self._given:
            if step != state.global_step:
                continue
            if verb == "set_kl_coef":
                self._trainer.beta = value
            elif verb == "scale_lr":
                _set_rate(loop["optimizer"], loop["lr_scheduler"], value)
            elif verb == "set_knob":
                setattr(args, KNOB, value)
            control.should_save = control.should_save or verb in ("checkpoint", "stop")
            control.should_training_stop = control.should_training_stop or verb == "stop"


class Diary(TrainerCallback):
    """What was in force in each step: (coefficient, learning rate, knob), read from the trainer itself."""

    def __init__(self, trainer: Any) -> None:
        self._trainer, self.lines = trainer, list[tuple[float, float, float]]()

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **loop: Any) -> None:
        optimizer = loop.get("optimizer") or self._trainer.optimizer
        rate = float(optimizer.param_groups[0]["lr"])
        self.lines.append((float(self._trainer.beta), rate, float(getattr(args, KNOB))))


def _set_rate(optimizer: Any, scheduler: Any, rate: float) -> None:
    factor = rate / optimizer.param_groups[0]["lr"]
    for group in optimizer.param_groups:
        group["lr"] = rate
        group["initial_lr"] *= factor
    core = getattr(scheduler, "scheduler", scheduler)
    core.base_lrs = [base * factor for base in core.base_lrs]


def main(folder: Path, matrix: Mapping[str, Any]) -> None:
    warnings.simplefilter("ignore")
    sender.HEARTBEAT_MAX_S = link.CAP_EARLY_S = HEARTBEAT_S
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=TIMEOUT)
    for run in matrix["runs"]:
        steered = _steered(folder, matrix["policy"], run)
        given = [steered.pop("given")]
        dist.broadcast_object_list(given, src=0)
        by_hand = _by_hand(folder, matrix["policy"], run, given[0])
        told = folder / f"{run['id']}.rank-{dist.get_rank()}"
        told.write_text(json.dumps({"steered": steered, "by_hand": by_hand}))
        told.rename(told.with_name(f"{told.name}.json"))
    dist.destroy_process_group()


def _steered(folder: Path, policy: str, run: Mapping[str, Any]) -> dict[str, Any]:
    trainer = _trainer(Path(policy), folder / "out" / run["id"], run)
    _stand_in(trainer, folder, run)
    reporter = rlvitals.attach(trainer, run=run["id"], project=run["project"])
    turn, read = partial(setattr, trainer.args, KNOB), partial(getattr, trainer.args, KNOB)
    reporter.knob(KNOB, turn, get=read, low=TURNED, high=NORM)
    return _train(trainer) | _journalled(reporter)


def _by_hand(folder: Path, policy: str, run: Mapping[str, Any], given: Sequence[Sequence[Any]]) -> dict[str, Any]:
    trainer = _trainer(Path(policy), folder / "out" / f"{run['id']}-by-hand", run)
    trainer.add_callback(Hand(trainer, given))
    return _train(trainer)


def _trainer(policy: Path, output: Path, run: Mapping[str, Any]) -> Any:
    size = dist.get_world_size()
    trainer = tiny.make_trainer(
        policy,
        output,
        beta=BETA,
        learning_rate=RATE,
        max_grad_norm=NORM,
        max_steps=STEPS,
        per_device_train_batch_size=8 // size,
        per_device_eval_batch_size=4,
        save_only_model=True,
        logging_steps=1000,
    )
    trainer.add_callback(Moments(run["moment"], run["steps"]))
    return trainer


def _stand_in(trainer: Any, folder: Path, run: Mapping[str, Any]) -> None:
    """Inside of the moment's method, once in each of the run's steps; in ours it would be after ``attach``."""
    original, steps = getattr(trainer, WHERE[run["moment"]]), set(run["steps"])

    def hooked(*args: Any, **kwargs: Any) -> Any:
        step = trainer.state.global_step
        if step in steps and (run["moment"] == "eval" or trainer.model.training):
            steps.remove(step)
            Gate(folder=folder, run=run["id"], step=step).stand(dist.get_rank())
        return original(*args, **kwargs)

    setattr(trainer, WHERE[run["moment"]], hooked)


def _train(trainer: Any) -> dict[str, Any]:
    diary = Diary(trainer)
    trainer.add_callback(diary)
    trainer.train()
    return {
        "weights": tiny.weights_hash(trainer),
        "steps": trainer.state.global_step,
        "diary": diary.lines,
        "checkpoints": sorted(path.name for path in Path(trainer.args.output_dir).glob("checkpoint-*")),
    }


def _journalled(reporter: Any) -> dict[str, Any]:
    """What this rank's journal says became of each command: (id, state, step), and (verb, step, value) by id."""
    if not reporter.enabled:
        return {"outcomes": [], "notes": [], "given": []}
    reporter.flush(FLUSH_S)  # a close does not wait for a service that is just being started again
    reporter.close()
    found = tiny.records(reporter)
    outcomes = [record for record in found if isinstance(record, Outcome)]
    kinds = {taken.command.id: taken.command.kind.value for taken in found if isinstance(taken, Taken)}
    return {
        "outcomes": [[o.command_id, o.state.value, o.step] for o in outcomes],
        "notes": [dict(event.payload) for event in found if isinstance(event, Event) and event.payload],
        "given": [[kinds[o.command_id], o.step, o.after] for o in outcomes if o.state is CommandState.APPLIED],
    }


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text()))
