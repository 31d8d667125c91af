"""Step time of a real TRL GRPO run on the CPU with and without `attach`, in turn within one process.

With: hooks, probes, journal and the sender's thread, which posts to a sink. Without: the same trainer with its own
methods back in place. Budget: the upper 95 % bound of the stretch is at most 2 % of the step time.

Sharp without cheating: all completions have the same length, so that steps have the same work; steps come in
blocks of four, on off off on and off on on off in turn, so that a drift cancels; blocks are compared by the sums
of their steps, and the bound is that of a trimmed mean. Process and sender are held to one core, where what the
sender does costs the training. The wall's clock and the process's own are read: other processes stretch the former
only.
"""

from __future__ import annotations

import gc
import math
import os
import random
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from transformers import TrainerCallback

import rlvitals
from benchmarks.sink import sinking
from rlvitals.integrations.trl.callback import VitalsCallback
from rlvitals.integrations.trl.session import Session

BLOCKS = int(os.environ.get("BENCH_TRL_BLOCKS", "40"))
FLAVOUR = os.environ.get("BENCH_TRL_FLAVOUR", "unhealthy")
WARM_UP = 6
PATTERNS = ((True, False, False, True), (False, True, True, False))
BUDGET = 0.02
TRIMMED = 0.1
RESAMPLES = 4000
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
    turns = [True] * WARM_UP + [on for block in range(BLOCKS) for on in PATTERNS[block % 2]]
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
            if len(self.steps) == WARM_UP:
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
    for clock in ("process", "wall"):
        seconds = [getattr(step, clock) for step in run.steps]
        stretches = list(_stretches(seconds[WARM_UP:], run.turns[WARM_UP:]))
        without = statistics.median(s for s, on in zip(seconds, run.turns, strict=True) if not on)
        low, high = _bounds(stretches)
        print(
            f"stretch of a step with us, {clock} clock ({1000 * without:.0f} ms without): "
            f"{100 * _centre(stretches):+.2f} % of the step, 95 % bounds {100 * low:+.2f} … {100 * high:+.2f} % "
            f"(budget: upper bound ≤ {100 * BUDGET:.0f} %)"
        )
    _print_hooks(run)


def _stretches(seconds: Sequence[float], turns: Sequence[bool]) -> Iterator[float]:
    """Of each block: its two steps with us against its two without."""
    for start in range(0, len(seconds) // 4 * 4, 4):
        block = list(zip(seconds[start : start + 4], turns[start : start + 4], strict=True))
        yield math.fsum(s for s, on in block if on) / math.fsum(s for s, on in block if not on) - 1


def _print_hooks(run: Run) -> None:
    """Shares of the step with us, by the thread's own clock: they hold whatever else runs."""
    steps = [step.process for step, on in list(zip(run.steps, run.turns, strict=True))[WARM_UP:] if on]
    whole = math.fsum(steps)
    print(f"in the training's thread: {100 * sum(run.hooks.values()) / whole:.2f} % of a step, of which")
    for name, seconds in sorted(run.hooks.items(), key=lambda hook: -hook[1])[:8]:
        print(f"  {100 * seconds / whole:5.2f} %  {name}")


def _centre(values: Sequence[float]) -> float:
    """The mean without the least and the largest tenth."""
    cut = int(TRIMMED * len(values))
    return statistics.fmean(sorted(values)[cut : len(values) - cut])


def _bounds(values: Sequence[float]) -> tuple[float, float]:
    """Bootstrap 95 % bounds of the centre."""
    dice = random.Random(0)
    centres = sorted(_centre(dice.choices(values, k=len(values))) for _ in range(RESAMPLES))
    return centres[int(0.025 * RESAMPLES)], centres[int(0.975 * RESAMPLES)]


if __name__ == "__main__":
    main()
