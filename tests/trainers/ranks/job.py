"""One rank of a training: ``python -m tests.trainers.ranks.job JOB.json``, with torch.distributed's variables.

Prints a JSON line: what this rank saw, did and ended with.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from time import perf_counter
from typing import Any

from tests.trainers.ranks import sharding


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """``how`` the weights are held (see `sharding`); ``trainer`` and ``attach`` are settings of these.

    ``runs`` are trainings one after the other: ``plain`` without us, ``watched`` without commands, ``steered``
    with. ``commands`` are (when, step, name, kind, argument): they arrive at the ``when`` of that step, one of
    ``step_end``, ``generation``, ``evaluate`` and ``save``. A pause is resumed after ``beats`` of its beats, 0
    leaves that to others; ``dies`` is (rank, beat) of a rank that kills itself in it.
    """

    policy: str
    output: str
    how: str = "ddp"
    lora: bool = False
    runs: Sequence[str] = ("watched", "steered")
    timeout_s: float = 60.0
    beats: int = 0
    beat_s: float = 0.5
    dies: Sequence[int] = ()
    trainer: Mapping[str, Any] = field(default_factory=dict)
    attach: Mapping[str, Any] = field(default_factory=dict)
    limits: Mapping[str, Any] = field(default_factory=dict)
    commands: Sequence[Sequence[Any]] = ()

    def write(self, path: Path) -> Path:
        path.write_text(json.dumps(asdict(self)))
        return path


def main(job: Job) -> None:
    warnings.simplefilter("ignore")
    sharding.allow(job.how)
    import torch
    import torch.distributed as dist

    from rlvitals import guard

    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(seconds=job.timeout_s))
    told: dict[str, Any] = {"rank": dist.get_rank()}
    for name in job.runs:
        trainer = _trainer(job, name)
        watched = Watched(job, trainer, job.commands if name == "steered" else ()) if name != "plain" else None
        trainer.train()
        told[name] = {"weights": weights_hash(trainer), **(watched.told() if watched else {})}
    told["errors"] = guard.errors
    print(json.dumps(told), flush=True)
    dist.destroy_process_group()


def weights_hash(trainer: Any) -> str:
    """Of every bit that this rank holds of the policy's weights."""
    digest = hashlib.sha256()
    for name, value in sorted(trainer.model.named_parameters()):
        held = getattr(value, "ds_tensor", value)
        held = getattr(held, "to_local", lambda held=held: held)()
        digest.update(name.encode() + held.detach().contiguous().numpy().tobytes())
    return digest.hexdigest()


class Watched:
    """A trainer that is attached, and the commands that come to it."""

    def __init__(self, job: Job, trainer: Any, commands: Sequence[Sequence[Any]]) -> None:
        import rlvitals
        from rlvitals.control import ControlLimits
        from rlvitals.integrations.trl.callback import VitalsCallback
        from tests.client.integrations import tiny

        self._job, self._commands, self.trainer, self._beats = job, commands, trainer, 0
        self.rates: list[float] = []
        self._pause_s = 0.0
        for when, method in (("generation", "_generate"), ("evaluate", "evaluate"), ("save", "_save_checkpoint")):
            self._arrive_in(when, method)
        trainer.add_callback(tiny.AtStepEnd(lambda step: self._arrive("step_end", step)))
        limits = ControlLimits(**{"cooldown_steps": 0, **job.limits})
        self.reporter = rlvitals.attach(trainer, limits=limits, **job.attach)
        trainer.add_callback(tiny.AtStepEnd(lambda step: self.rates.append(_rate(trainer))))
        callback = next(c for c in trainer.callback_handler.callbacks if isinstance(c, VitalsCallback))
        self._wait, callback._wait = callback._wait, self._beat

    def told(self) -> dict[str, Any]:
        from rlvitals.contract.command import Outcome
        from rlvitals.contract.report import Event
        from rlvitals.integrations.trl import facts
        from tests.client.integrations import tiny

        trainer, reporter = self.trainer, self.reporter
        told = {
            "steps": trainer.state.global_step,
            "beta": trainer.beta,
            "rates": self.rates,
            "beats": self._beats,
        }
        told["pause_s"] = self._pause_s
        told |= {"rows": facts.embedding_rows(trainer), "enabled": reporter.enabled}
        told["kl"] = [log["kl"] for log in trainer.state.log_history if "kl" in log]
        told["checkpoints"] = sorted(path.name for path in Path(trainer.args.output_dir).glob("checkpoint-*"))
        if reporter.enabled:
            found = tiny.records(reporter)
            steps = tiny.steps_of(found)
            told["reports"] = [[step.step, dict(step.values), dict(step.missing)] for step in steps]
            told["outcomes"] = [
                [o.command_id, o.state.value, o.step, o.before, o.after] for o in found if isinstance(o, Outcome)
            ]
            told["notes"] = [dict(event.payload) for event in found if isinstance(event, Event) and event.payload]
            reporter.close()
        return told

    def _arrive_in(self, when: str, method: str) -> None:
        original = getattr(self.trainer, method)

        def hooked(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            self._arrive(when, self.trainer.state.global_step)
            return result

        setattr(self.trainer, method, hooked)

    def _arrive(self, when: str, step: int) -> None:
        due = [_command(*told[2:]) for told in self._commands if (told[0], told[1]) == (when, step)]
        if due and self.reporter.enabled:
            self.reporter.control.offer(due)

    def _beat(self, seconds: float) -> None:
        self._beats += 1
        if list(self._job.dies) == [int(os.environ["RANK"]), self._beats]:
            os.kill(os.getpid(), signal.SIGKILL)
        began = perf_counter()
        self._wait(self._job.beat_s)
        self._pause_s += perf_counter() - began
        if self._beats == self._job.beats and self.reporter.enabled:
            self.reporter.control.offer([_command("resume", "resume")])


def _rate(trainer: Any) -> float:
    return float(trainer.optimizer.param_groups[0]["lr"])


def _command(name: str, kind: str, argument: float | None = None) -> Any:
    from rlvitals.contract.command import Command, CommandKind

    until = datetime.now(timezone.utc) + timedelta(hours=1)
    return Command(id=name, kind=CommandKind(kind), argument=argument, expires_at=until)


def _trainer(job: Job, name: str) -> Any:
    from tests.client.integrations import tiny

    settings: dict[str, Any] = {"beta": 0.5, "per_device_train_batch_size": 4, "logging_steps": 1}
    settings |= sharding.settings(job.how) | dict(job.trainer)
    # one folder for all, as where a job runs: shards of a checkpoint come together in it
    return tiny.make_trainer(Path(job.policy), Path(job.output) / name, adapter=_adapter(job), **settings)


def _adapter(job: Job) -> Any:
    if not job.lora:
        return None
    from peft import LoraConfig

    return LoraConfig(r=4, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM")


if __name__ == "__main__":
    main(Job(**json.loads(Path(sys.argv[1]).read_text())))
