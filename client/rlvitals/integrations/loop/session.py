"""One loop: what it has told of this optimizer step, and what is reported when the step ends."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from rlvitals.contract.aliases import resolve
from rlvitals.contract.report import Phase
from rlvitals.guard import Guard
from rlvitals.integrations.loop import measure
from rlvitals.integrations.loop.facts import ABSENT, WEIGHTED, Coefficient, Facts
from rlvitals.integrations.loop.measure import MicroBatch
from rlvitals.integrations.loop.rollouts import NO_ADVANTAGES, Rollout, RolloutReader, grouped
from rlvitals.integrations.loop.weights import WeightWatch
from rlvitals.integrations.numbering import numbered
from rlvitals.integrations.pieces import of_gradient
from rlvitals.integrations.ranks import Ranks
from rlvitals.integrations.samples import Shelf, of_several
from rlvitals.integrations.steps import Finished, Step
from rlvitals.integrations.telling import Teller
from rlvitals.integrations.token_scores import scored_on_host
from rlvitals.probes.groups import ADVANTAGE_IN_EQUAL
from rlvitals.probes.length_history import LengthHistory
from rlvitals.probes.memory import tally_memory
from rlvitals.probes.parameters import measure_parameter_gradients
from rlvitals.probes.phases import PhaseClock, StepPhase
from rlvitals.probes.reduction import Pending, Reduction
from rlvitals.probes.tally import Tally
from rlvitals.reporter import Reporter

_TOLD_PHASES = {phase.value for phase in Phase}


class Session:
    """Lives on every rank; only rank 0's reporter is enabled. Its callers keep its errors (`Vitals`)."""

    def __init__(self, facts: Facts, reporter: Reporter, ranks: Ranks, coefficient: Coefficient) -> None:
        self.facts, self.reporter, self.ranks, self.coefficient = facts, reporter, ranks, coefficient
        self._withheld = facts.withheld()
        self._reader = RolloutReader.of(
            facts, ranks=ranks.size, keep=facts.texts and reporter.enabled and reporter.settings.texts
        )
        self._teller = Teller(
            reporter=reporter,
            ranks=ranks,
            withheld=self._withheld,
            absent=Tally(missing=ABSENT),
            own=facts.absent,
            tells=facts.tells,
            table=self._reader.text.table,
        )
        self._vocabulary = facts.rows()
        self._clock = PhaseClock(())
        self._history = LengthHistory()
        self._weights = WeightWatch(facts.model, facts.optimizer, self._looked)
        self._weights.install(first=ranks.rank == 0)
        self._device: torch.device | None = None
        self._number, self._first = 0, 0
        self._shelves: list[Shelf] = []
        self._begin()

    def _begin(self) -> None:
        self._step, self._lengths, self._rows = Step(), Tally.zero(), 0

    # -- what the loop tells -----------------------------------------------------------------------

    def rollout(
        self,
        ids: Any,
        chosen: Any,
        *,
        rewards: Any,
        advantages: Any,
        group_ids: Any,
        finish_reasons: Sequence[Any] | None,
        prompts: Sequence[Any] | None,
        texts: Sequence[str] | None,
    ) -> None:
        if not self._rows:  # else steps without a rollout train on the one before
            self._shelves = []
        told = Rollout.of(ids, chosen, self.facts.stop_ids, 0)
        told = self._placed(told)
        if group_ids is not None:
            self._allow(grouped(self._withheld))
        rows, totals = None, None
        with Guard("measuring lengths"):
            self._lengths += self._reader.lengths(told, finish_reasons)
        with Guard("reading completions"):
            tally, rows = self._reader.texts(told, prompts, group_ids, self._number)
            self._step.tally += tally
        with Guard("reading rewards"):
            tally, totals = self._reader.rewards(told, rewards, group_ids)
            self._step.tally += tally
        if advantages is None:
            self._step.tally += Tally.absent((ADVANTAGE_IN_EQUAL,), NO_ADVANTAGES)
        else:
            with Guard("reading advantages"):
                self._step.add([self._reader.advantages(told, advantages, totals, group_ids)])
                self._step.generated = True
        with Guard("keeping completions"):
            self._step.samples += self._reader.samples(told, rows, totals, finish_reasons, prompts, texts)
            shelf = self._reader.shelf(told, rows, totals, finish_reasons, prompts, texts)
            self._shelves += [shelf] if shelf is not None else []

    def loss(self, loss: Any, given: Mapping[str, Any], num_items_in_batch: Any) -> None:
        batch = MicroBatch.of(
            given,
            num_items_in_batch=num_items_in_batch,
            sample_offset=self._sample_offset(given.get("logp")) if given.get("rows") is None else 0,
            vocabulary=self._vocabulary,
            step=self._number,
            advantages_told=self._step.generated,
        )
        self._device = next(batch.devices, self._device)
        if batch.weights is not None and self.facts.kl_coef is not None:
            self._allow({name: why for name, why in self._withheld.items() if name not in WEIGHTED})
        self._step.micro_batches += 1
        for what, launch in measure.pieces(self.facts, self.coefficient.now(), loss, batch):
            with Guard(f"measuring {what}"):
                found = launch()
                self._step.add([found if batch.rows is None else numbered(found, batch.rows + self._first)])
        with Guard("scoring the tokens of kept completions"):
            self._step.samples = scored_on_host(self._step.samples, given, batch.sample_offset)

    def add(self, tally: Tally) -> None:
        self._step.tally += tally

    def gradients(self) -> None:
        if self.ranks.rank == 0 and self.facts.model is not None:
            self._step.add([measure_parameter_gradients(self.facts.model.named_parameters())])

    def gradient(self, norm: Any) -> None:
        if norm is not None and self.ranks.rank == 0:
            self._step.add([of_gradient(norm)])

    def phase_begins(self, name: str) -> None:
        self._clock.enter(StepPhase(name))
        if name in _TOLD_PHASES:
            # told by the heartbeat only: two journalled changes of phase a step would be noise
            self.reporter.current_phase = Phase(name)

    def phase_ends(self, name: str) -> None:
        self._clock.leave(StepPhase(name))
        self.reporter.current_phase = Phase.UPDATE

    def step_ends(self, step: int, told: Mapping[str, Any]) -> None:
        """Collective over ranks. On a GPU with several ranks a step is told one step later, when it is copied."""
        began = time.perf_counter()
        finished = Finished(step=step, values={}, tally=Tally.zero(), pending=None)
        with Guard("measuring the step"):
            finished = self._finish(step, told)
        self._number = step
        self.reporter.spent(time.perf_counter() - began)
        self._teller.tell(finished)

    def settle(self) -> None:
        self._teller.settle()

    def close(self, *, settle: bool) -> None:
        self._weights.remove()
        if settle:
            self._teller.settle()
        self.ranks.leave()

    # -- inside ------------------------------------------------------------------------------------

    def _placed(self, told: Rollout) -> Rollout:
        """Numbered among all ranks' completions of this step; ranks are taken to tell of as many each."""
        first = self._rows + self.ranks.rank * told.size
        self._rows += self.ranks.size * told.size
        self._first = first
        return Rollout(ids=told.ids, lengths=told.lengths, written=told.written, first_sample=first)

    def _allow(self, withheld: Mapping[str, str]) -> None:
        self._withheld = dict(withheld)
        self._teller.withheld = self._withheld

    def _looked(self, found: Reduction | None, seconds: float) -> None:
        if found is not None:
            self._step.add([found])
        self.reporter.spent(seconds)

    def _finish(self, step: int, told: Mapping[str, Any]) -> Finished:
        done, lengths, shelf = self._step, self._lengths, of_several(self._shelves)
        self._begin()
        if lengths.counts:
            done.tally += self._history.add(lengths)
        done.tally += self._clock.take()
        if self._device is not None:
            done.tally += tally_memory(self._device)
        for sample in done.samples:
            self._teller.tell_sample(step, sample)
        pending = Pending(done.on_device) if done.on_device else None
        kept = frozenset(sample.sample for sample in done.samples)
        values = self._scalars(done, told)
        return Finished(step=step, values=values, tally=done.tally, pending=pending, shelf=shelf, kept=kept)

    def _scalars(self, done: Step, told: Mapping[str, Any]) -> dict[str, Any]:
        values: dict[str, Any] = {"progress.step_time": time.perf_counter() - done.began_s}
        rate, coefficient = self._weights.rate(), self.coefficient.now()
        if rate is not None:
            values["policy.learning_rate"] = rate
        if coefficient is not None:
            values["kl.coef"] = coefficient
        for name, value in told.items():
            known = resolve(name)
            values[known.metric if known is not None else name] = value
        return values

    def _sample_offset(self, logp: Any) -> int:
        """Where a row's number is not told: its place among the rows that were trained on."""
        rows = len(logp) if logp is not None and hasattr(logp, "__len__") else 0
        return (self.ranks.rank * self.facts.accumulation + self._step.micro_batches) * rows
