"""What we cost a real training by our own count: the seconds of ours in its thread, against those of its steps.

A count, no comparison of steps with us and without: what slows training elsewhere (caches, the sender's share of a
core) is not in it. `benchmarks/trl_step.py` compares.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from tests.end_to_end.server import Server

WARM_UP = 2
"""Steps in which things are imported and made for the first time."""
RESAMPLES = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Overhead:
    """Seconds a step, each with the upper 95 % bound of its mean; ``share`` of the steps' own time."""

    steps: int
    own_s: float
    own_upper_s: float
    step_s: float
    share_upper: float

    def __str__(self) -> str:
        return (
            f"{1000 * self.own_s:.1f} ms a step (at most {1000 * self.own_upper_s:.1f}) of {self.step_s:.3f} s, "
            f"upper bound {100 * self.share_upper:.2f} %, over {self.steps} steps"
        )


def measure(own: Sequence[float], whole: Sequence[float]) -> Overhead:
    """From ``rlvitals.overhead`` and ``progress.step_time`` of the same steps. Raises ValueError on too few."""
    if len(own) != len(whole) or len(own) < WARM_UP + 3:
        raise ValueError(f"{len(own)} and {len(whole)} steps: at least {WARM_UP + 3} of each are needed")
    pairs = list(zip(own, whole, strict=True))[WARM_UP:]
    dice = random.Random(0)
    drawn = [dice.choices(pairs, k=len(pairs)) for _ in range(RESAMPLES)]
    return Overhead(
        steps=len(pairs),
        own_s=statistics.fmean(mine for mine, _ in pairs),
        own_upper_s=_upper([statistics.fmean(mine for mine, _ in sample) for sample in drawn]),
        step_s=statistics.fmean(step for _, step in pairs),
        share_upper=_upper(
            [sum(mine for mine, _ in sample) / sum(step for _, step in sample) for sample in drawn]
        ),
    )


def of_run(server: Server, run: str) -> Overhead:
    """Of all steps that a run told the service."""
    own, whole = (_by_step(server, run, name) for name in ("rlvitals.overhead", "progress.step_time"))
    steps = sorted(own.keys() & whole.keys())
    return measure([own[step] for step in steps], [whole[step] for step in steps])


def _by_step(server: Server, run: str, metric: str) -> dict[int, float]:
    told = server.series(run, metric)
    return dict(zip(told["step"], told["value"], strict=True))


def _upper(means: list[float]) -> float:
    return sorted(means)[int(0.975 * len(means))]
