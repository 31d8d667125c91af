"""Step time of a real TRL GRPO run on the CPU with and without `attach`, in turn within one process.

With: hooks, probes, journal and the sender's thread, which posts to a sink. Without: the same trainer with its own
methods back in place. Budget: the upper 95 % bound of the stretch is at most 2 % of the step time.
"""

from __future__ import annotations

import os
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from transformers import TrainerCallback

import rlvitals
from benchmarks.sink import sinking
from rlvitals.integrations.trl.callback import VitalsCallback

PAIRS = int(os.environ.get("BENCH_TRL_PAIRS", "60"))
WARM_UP = 6
BUDGET = 0.02
RESAMPLES = 4000
EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


def main() -> None:
    sys.path.insert(0, str(EXAMPLES))
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    with sinking() as url, tempfile.TemporaryDirectory() as folder:
        os.environ["RLVITALS_HOME"] = folder
        pairs, own_s = measure(url, Path(folder))
    report(pairs, own_s)


def measure(url: str, folder: Path) -> tuple[list[tuple[float, float]], float]:
    """Seconds (with, without) of each pair of steps, and the time in our own code per step with us."""
    import demo_grpo
    import demo_policy

    torch.set_num_threads(1)
    trainer = demo_grpo.make_trainer(
        demo_grpo.FLAVOURS["unhealthy"],
        demo_policy.load(demo_grpo.CACHE),
        folder,
        max_steps=WARM_UP + 2 * PAIRS + 1,
        logging_steps=100_000,
    )
    reporter = rlvitals.attach(trainer, url=url, token="bench", project="bench")
    spent: list[float] = []
    add = reporter.spent
    reporter.spent = lambda seconds: (spent.append(seconds), add(seconds))[1]  # type: ignore[method-assign]
    turns = [True] * WARM_UP + [on for i in range(PAIRS) for on in ((True, False) if i % 2 else (False, True))]
    clock = _switch(trainer, turns)
    trainer.train()
    reporter.close()
    times = list(zip(clock.seconds, turns, strict=False))[WARM_UP:]
    pairs = [tuple(sorted(times[i : i + 2], key=lambda t: not t[1])) for i in range(0, 2 * PAIRS, 2)]
    return [(a[0], b[0]) for a, b in pairs], sum(spent) / (WARM_UP + PAIRS)


class Switch(TrainerCallback):
    """In the place of our callback: times each step, and puts our hooks in or takes them out before it."""

    def __init__(self, trainer: Any, ours: TrainerCallback, turns: list[bool]) -> None:
        self.seconds: list[float] = []
        self._ours, self._turns = ours, turns
        self._hooks = [
            (owner, name, hook) for owner in (trainer, trainer.accelerator) for name, hook in _hooks(owner)
        ]
        self._on, self._began = True, 0.0

    def on_train_begin(self, *told: Any, **loop: Any) -> None:
        self._ours.on_train_begin(*told, **loop)

    def on_step_begin(self, *told: Any, **loop: Any) -> None:
        if self._began:
            self.seconds.append(time.perf_counter() - self._began)
        self._turn(self._turns[len(self.seconds)] if len(self.seconds) < len(self._turns) else True)
        self._began = time.perf_counter()
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


def _switch(trainer: Any, turns: list[bool]) -> Switch:
    callbacks = trainer.callback_handler.callbacks
    place = next(i for i, callback in enumerate(callbacks) if isinstance(callback, VitalsCallback))
    callbacks[place] = Switch(trainer, callbacks[place], turns)
    return callbacks[place]


def report(pairs: list[tuple[float, float]], own_s: float) -> None:
    without = statistics.median(off for _, off in pairs)
    stretches = [on / off - 1 for on, off in pairs]
    low, high = _bounds(stretches)
    print(f"{len(pairs)} pairs; step without us, median {1000 * without:.0f} ms")
    print(
        f"stretch of a step with us: median {100 * statistics.median(stretches):+.2f} % of the step, "
        f"95 % bounds {100 * low:+.2f} … {100 * high:+.2f} % (budget: upper bound ≤ {100 * BUDGET:.0f} %)"
    )
    print(f"time in our own code, by our own count: {1000 * own_s:.2f} ms a step = {100 * own_s / without:.2f} %")


def _bounds(values: list[float]) -> tuple[float, float]:
    """Bootstrap 95 % bounds of the median."""
    dice = random.Random(0)
    medians = sorted(statistics.median(dice.choices(values, k=len(values))) for _ in range(RESAMPLES))
    return medians[int(0.025 * RESAMPLES)], medians[int(0.975 * RESAMPLES)]


if __name__ == "__main__":
    main()
