"""A trainer of which only its callbacks are seen: the numbers that it logs, step by step, and its commands."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from rlvitals.contract.aliases import resolve
from rlvitals.contract.evaluation import NEUTRAL
from rlvitals.contract.metrics import METRICS, Family
from rlvitals.contract.report import EventKind, Phase
from rlvitals.guard import Guard
from rlvitals.integrations.hooks import HookTable
from rlvitals.integrations.ranks import Ranks
from rlvitals.integrations.steps import Finished
from rlvitals.integrations.telling import Teller
from rlvitals.integrations.trl import facts, places
from rlvitals.integrations.trl.metrics_tail import Tail, evaluated, mean, numbers, of_training
from rlvitals.probes.tally import Tally
from rlvitals.reporter import Reporter

CALLBACK = "not measured: RLVitalsCallback sees what the trainer logs; rlvitals.attach(trainer) sees its tensors"
NOT_NOW = "not measured: the trainer did not log it at this step"
SUMMARY = frozenset(
    {"train_runtime", "train_samples_per_second", "train_steps_per_second", "total_flos", "train_loss"}
)
"""What the end of a training logs of all of it, and of no step."""


class ScalarSession:
    """Has the shape of `Session`. ``trainer`` is None where nobody showed it; ``reason`` why there is no more.

    What a step logs comes after its end, or just before: a step is told when the next one begins.
    """

    def __init__(self, reporter: Reporter, *, reason: str, trainer: Any = None, framework: str = "trl") -> None:
        self.trainer, self.reporter = trainer, reporter
        self.table = HookTable(framework, places.release() if framework == "trl" else facts.release(framework))
        self.configured = facts.kl_coef(trainer) if trainer is not None else None
        self.ranks = Ranks()
        self._teller = Teller(reporter=reporter, ranks=self.ranks)
        self._reason, self._tails = reason, (Tail(), Tail())
        self._given: set[str] = set()
        self._of_step: set[str] = set()
        self._waiting: int | None = None
        self._values: dict[str, float] = {}
        self._rate: float | None = None
        self._began_s = time.perf_counter()

    # -- events ------------------------------------------------------------------------------------

    def train_begins(self, ranks: Ranks) -> None:
        self.ranks = self._teller.ranks = ranks
        self._waiting, self._values, self._of_step, self._began_s = None, {}, set(), time.perf_counter()
        self.reporter.phase(Phase.UPDATE)
        self.table.tell(self.reporter)

    def step_begins(self, learning_rate: float | None) -> None:
        self.settle()
        self._rate = learning_rate

    def optimizer_begins(self) -> None:
        """Nothing is looked at there."""

    def optimizer_done(self) -> None:
        """Nothing is looked at there."""

    def logged(self, step: int, logs: Mapping[str, Any]) -> None:
        """What an evaluation logs is told at once: it is no part of a step."""
        self.table.saw(places.LOG)
        if step != self._waiting:
            self.settle()  # TRL's PPO logs before the step ends: this is of the next one
        found = numbers(logs)
        evaluation = evaluated(found)
        if evaluation:
            self.reporter.report(step, evaluation)
        for name in found.keys() - evaluation.keys() - SUMMARY:
            # the mean over several steps does not replace the step's own
            if name not in self._of_step and not (evaluation and name in NEUTRAL):
                self._keep(name, found[name])

    def step_ends(self, step: int) -> None:
        self.settle()  # where no step ever begins, the one before still waits
        now = time.perf_counter()
        self._values["progress.step_time"], self._began_s = now - self._began_s, now
        if self._rate is not None:
            self._values.setdefault("policy.learning_rate", self._rate)
        with Guard("reading the trainer"):
            self._of_trainer()
        self._waiting = step
        with Guard("telling of the hooks"):
            self.table.saw(places.STEPS)
            self.table.step_ends(self.reporter, step)

    def settle(self) -> None:
        """Collective: tells the step that waited for its log."""
        step, self._waiting = self._waiting, None
        if step is None:
            return
        values, self._values, self._of_step = self._values, {}, set()
        with Guard("telling a step"):
            self._given.update(values)
            self._teller.absent = Tally(missing=self._absent())
        self._teller.tell(Finished(step=step, values=values, tally=Tally.zero(), pending=None))

    def train_ends(self) -> None:
        self.settle()
        self.ranks.leave()
        self.reporter.phase(Phase.FINISHED)

    def checkpoint_saved(self, step: int, folder: str) -> None:
        self.reporter.event(EventKind.CHECKPOINT, step, folder=folder)

    # -- inside ------------------------------------------------------------------------------------

    def _of_trainer(self) -> None:
        """Per-step values, whatever the logging interval averages over."""
        if self.trainer is None:
            return
        shown = of_training(self.trainer), getattr(self.trainer, "stats", None) or {}
        for tail, metrics in zip(self._tails, shown, strict=True):
            for name, fresh in tail.new(metrics).items():
                self._keep(name, mean(fresh))
                self._of_step.add(name)
        coefficient = facts.kl_coef(self.trainer)
        if coefficient is not None:
            self._values["kl.coef"] = coefficient
        if self.trainer.state.epoch is not None:
            self._values["progress.epoch"] = float(self.trainer.state.epoch)

    def _keep(self, name: str, value: float) -> None:
        found = resolve(name)
        self._values[found.metric if found is not None else name] = value

    def _absent(self) -> dict[str, str]:
        told = facts.elsewhere()
        return {
            metric.name: NOT_NOW if metric.name in self._given else told.get(metric.name, self._reason)
            for metric in METRICS
            if metric.family is not Family.SELF
        }
