"""One rank of a two-rank training: started by test_trl_ranks.py with the usual torch.distributed variables.

Prints a JSON line: what this rank saw, did and ended with.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

import rlvitals
from rlvitals.contract.command import Command, CommandKind, Outcome
from rlvitals.integrations.trl.callback import VitalsCallback
from rlvitals.verdict import ControlLimits
from tests.client.integrations import tiny

TIMEOUT_S = 10.0
"""Of the training's own process group: a pause that left a rank alone in a collective would run into it."""
BEATS = 30
"""of half a second each: longer than the time-out"""


def main(policy: Path, output: Path) -> None:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(seconds=TIMEOUT_S))
    rank = dist.get_rank()
    trainer = tiny.make_trainer(policy, output / str(rank), beta=0.5, per_device_train_batch_size=4)
    reporter = rlvitals.attach(trainer, limits=ControlLimits(cooldown_steps=0))
    beats = _pause_with_beats(trainer, reporter) if rank == 0 else []
    trainer.train()
    print(json.dumps(_told(trainer, reporter, rank, len(beats))), flush=True)
    dist.destroy_process_group()


def _pause_with_beats(trainer: Any, reporter: rlvitals.Reporter) -> list[float]:
    """A coefficient and a pause at step 2; resume after ``BEATS`` beats of real time."""
    callback = next(c for c in trainer.callback_handler.callbacks if isinstance(c, VitalsCallback))
    wait, beats = callback._wait, []

    def beat(seconds: float) -> None:
        beats.append(seconds)
        wait(seconds)
        if len(beats) == BEATS:
            reporter.control.offer([_command("r", CommandKind.RESUME)])

    callback._wait = beat
    trainer.callback_handler.callbacks.remove(callback)
    commands = [_command("k", CommandKind.SET_KL_COEF, 0.1), _command("p", CommandKind.PAUSE)]
    trainer.add_callback(tiny.AtStepEnd(lambda step: reporter.control.offer(commands if step == 2 else [])))
    trainer.add_callback(callback)
    return beats


def _told(trainer: Any, reporter: rlvitals.Reporter, rank: int, beats: int) -> dict[str, Any]:
    told = {"rank": rank, "beta": trainer.beta, "steps": trainer.state.global_step, "beats": beats}
    told |= {"enabled": reporter.enabled, "weights": tiny.weights_hash(trainer)}
    if reporter.enabled:
        told["values"] = [dict(step.values) for step in tiny.steps(reporter)]
        told["outcomes"] = [
            [o.command_id, o.state.value] for o in tiny.records(reporter) if isinstance(o, Outcome)
        ]
    return told


def _command(name: str, kind: CommandKind, argument: float | None = None) -> Command:
    until = datetime.now(timezone.utc) + timedelta(hours=1)
    return Command(id=name, kind=kind, argument=argument, expires_at=until)


if __name__ == "__main__":
    os.environ["ACCELERATE_USE_CPU"] = "true"
    main(Path(sys.argv[1]), Path(sys.argv[2]))
