"""Step time of a real TRL GRPO run on the CPU with and without `attach`, in turn within one process.

With: hooks, probes, journal and the sender's thread, which posts to a sink. Without: the same trainer with its own
methods back in place. Budget: the upper 95 % bound of the stretch is at most 2 % of the step time.

Sharp without cheating: all completions have the same length, so that steps have the same work, and steps come in
`blocks`. Process and sender are held to one core, where what the sender does costs the training. The wall's clock
and the process's own are read: other processes stretch the former only.
"""

from __future__ import annotations

import gc
import math
import os
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from transformers import TrainerCallback

import rlvitals
from benchmarks import blocks
from benchmarks.sink import sinking
from rlvitals.integrations.trl.callback import VitalsCallback
from rlvitals.integrations.trl.session import Session

BLOCKS = int(os.environ.get("BENCH_TRL_BLOCKS", "40"))
FLAVOUR = os.environ.get("BENCH_TRL_FLAVOUR", "unhealthy")
EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
HOOKS = (
    *("logprobs_begin", "logprobs_computed", "loss_computed", "generation_begins", "rewards_begin"),
    *("rewards_calculated", "generation_done", "clipping_begins", "gradient_measured"),
    *("step_begins", "optimizer_begins", "optimizer_done", "step_ends"),
)
"""What of a session runs in the training's thread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seconds:
    """Of one step: on the wall's clock, and on the process's, all of its threads together."""

    wall: float
    process: float


@dataclass(slots=True)
class Run:
    """Each step's seconds, and the seconds of each of our hooks in all steps that had them, after the warm-up."""

    steps: list[Seconds]
    turns: list[bool]
    hooks: dict[str, float]


def main() -> None:
    sys.path.insert(0, str(EXAMPLES))
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    with sinking() as url, tempfile.TemporaryDirectory() as folder:
        os.environ["RLVITALS_HOME"] = folder
        with _one_core():
            run = measure(url, Path(folder))
    report(run)


@contextmanager
def _one_core() -> Iterator[None]:
    """This process and its threads on one core, where the system lets us."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def measure(url: str, folder: Path) -> Run:
    import demo_grpo
    import demo_policy

    torch.set_num_threads(1)
    flavour = demo_grpo.FLAVOURS[FLAVOUR]
    turns = blocks.turns(BLOCKS)
    trainer = demo_grpo.make_trainer(
        flavour,
        demo_policy.load(demo_grpo.CACHE),
        folder,
        max_steps=len(turns) + 1,
        logging_steps=100_000,
        generation_kwargs={"min_new_tokens": flavour.max_completion_length},
    )
    hooks: dict[str, float] = defaultdict(float)
    with ExitStack() as timed:
        for name in HOOKS:
            timed.enter_context(mock.patch.object(Session, name, _timed(getattr(Session, name), name, hooks)))
        reporter = rlvitals.attach(trainer, url=url, token="bench", project="bench")
        clock = _switch(trainer, turns, warm=hooks.clear)
        gc.collect()
        gc.freeze()
        trainer.train()
    reporter.close()
    return Run(steps=clock.steps[: len(turns)], turns=turns, hooks=hooks)


def _timed(hook: Callable[..., Any], name: str, hooks: dict[str, float]) -> Callable[..., Any]:
    @wraps(hook)
    def timed(*args: Any, **kwargs: Any) -> Any:
        began = time.thread_time()
        result = hook(*args, **kwargs)
        hooks[name] += time.thread_time() - began
        return result

    return timed


class Switch(TrainerCallback):
    """In the place of our callback: times each step, and puts our hooks in or takes them out before it."""

    def __init__(self, trainer: Any, ours: TrainerCallback, turns: list[bool], warm: Callable[[], object]) -> None:
        self.steps: list[Seconds] = []
        self._ours, self._turns, self._warm = ours, turns, warm
        self._hooks = [
            (owner, name, hook) for owner in (trainer, trainer.accelerator) for name, hook in _hooks(owner)
        ]
        self._on, self._began = True, Seconds(wall=0.0, process=0.0)

    def on_train_begin(self, *told: Any, **loop: Any) -> None:
        self._ours.on_train_begin(*told, **loop)

    def on_step_begin(self, *told: Any, **loop: Any) -> None:
        now = Seconds(wall=time.perf_counter(), process=time.process_time())
        if self._began.wall:
            spent = Seconds(wall=now.wall - self._began.wall, process=now.process - self._began.process)
            self.steps.append(spent)
            if len(self.steps) == blocks.WARM_UP:
                self._warm()
        self._turn(self._turns[len(self.steps)] if len(self.steps) < len(self._turns) else True)
        self._began = Seconds(wall=time.perf_counter(), process=time.process_time())
        if self._on:
            self._ours.on_step_begin(*told, **loop)

    def on_pre_optimizer_step(self, *told: Any, **loop: Any) -> None:
        if self._on:
            self._ours.on_pre_optimizer_step(*told, **loop)

    def on_optimizer_step(self, *told: Any, **loop: Any) -> None:
        if self._on:
            self._ours.on_optimizer_step(*told, **loop)

    def on_step_end(self, *told: Any, **loop: Any) -> None:
        if self._on:
            self._ours.on_step_end(*told, **loop)

    def on_train_end(self, *told: Any, **loop: Any) -> None:
        self._ours.on_train_end(*told, **loop)

    def _turn(self, on: bool) -> None:
        self._on = on
        for owner, name, hook in self._hooks:
            vars(owner).pop(name, None)
            if on:
                setattr(owner, name, hook)


def _hooks(owner: Any) -> list[tuple[str, Any]]:
    """What `attach` put on this instance: wrappers carry what they wrap."""
    return [
        (name, value) for name, value in vars(owner).items() if getattr(value, "__wrapped__", None) is not None
    ]


def _switch(trainer: Any, turns: list[bool], warm: Callable[[], object]) -> Switch:
    """``warm`` is called when the warm-up is over."""
    callbacks = trainer.callback_handler.callbacks
    place = next(i for i, callback in enumerate(callbacks) if isinstance(callback, VitalsCallback))
    switch = Switch(trainer, callbacks[place], turns, warm)
    callbacks[place] = switch
    return switch


def report(run: Run) -> None:
    print(f"{BLOCKS} blocks of 4 steps, completions of one length, one core ({FLAVOUR})")
    print(f"budget: the upper bound is at most {100 * blocks.BUDGET:.0f} % of the step")
    for clock in ("process", "wall"):
        print(blocks.describe(clock, [getattr(step, clock) for step in run.steps], run.turns))
    _print_hooks(run)


def _print_hooks(run: Run) -> None:
    """Shares of the step with us, by the thread's own clock: they hold whatever else runs."""
    steps = [step.process for step, on in list(zip(run.steps, run.turns, strict=True))[blocks.WARM_UP :] if on]
    whole = math.fsum(steps)
    print(f"in the training's thread: {100 * sum(run.hooks.values()) / whole:.2f} % of a step, of which")
    for name, seconds in sorted(run.hooks.items(), key=lambda hook: -hook[1])[:8]:
        print(f"  {100 * seconds / whole:5.2f} %  {name}")


if __name__ == "__main__":
    main()
