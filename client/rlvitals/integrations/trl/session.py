"""One attached trainer: what its hooks saw in this optimizer step, and what is reported when the step ends."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from rlvitals.contract.evaluation import is_evaluated
from rlvitals.contract.report import EventKind, Phase
from rlvitals.guard import Guard
from rlvitals.integrations.hooks import HookTable
from rlvitals.integrations.numbering import numbered
from rlvitals.integrations.pieces import Piece, of_gradient
from rlvitals.integrations.ranks import Ranks
from rlvitals.integrations.samples import Shelf
from rlvitals.integrations.steps import Finished, Step
from rlvitals.integrations.telling import Teller
from rlvitals.integrations.trl import completions, facts, measure, places, reward_kl
from rlvitals.integrations.trl.completions import Generation, Reader
from rlvitals.integrations.trl.kl_gradient import measure_kl_gradient
from rlvitals.integrations.trl.metrics_tail import Tail, of_training
from rlvitals.integrations.trl.numbering import Numbering
from rlvitals.integrations.trl.optimizer import OptimizerWatch
from rlvitals.integrations.trl.reward_kl import Scored
from rlvitals.integrations.trl.sampling_logits import SamplingLogits
from rlvitals.integrations.trl.step_values import read_step_values
from rlvitals.probes.phases import PhaseClock, StepPhase
from rlvitals.probes.reduction import Pending, Reduction
from rlvitals.probes.tally import Tally
from rlvitals.reporter import Reporter


class Session:
    """Lives on every rank; only rank 0's reporter is enabled."""

    def __init__(
        self,
        trainer: Any,
        reporter: Reporter,
        *,
        texts: bool = True,
        reward_range: tuple[float, float] | None = None,
        kl_gradient_every: int = 0,
        token_ranges: Mapping[str, Any] | None = None,
    ) -> None:
        self.trainer, self.reporter = trainer, reporter
        self.table = HookTable("trl", places.release())
        self.configured = facts.kl_coef(trainer)
        self.ranks = Ranks()
        self._teller = Teller(reporter=reporter, ranks=self.ranks)
        self._texts, self._reward_range = texts and reporter.enabled, reward_range
        self._kl_gradient_every, self._token_ranges = kl_gradient_every, token_ranges
        self._reader: Reader | None = None
        self.clock = PhaseClock()
        self._optimizer, self._numbering = OptimizerWatch(trainer), Numbering()
        self._logits = SamplingLogits(trainer, self._logits_seen)
        self._tail = Tail()
        self._step, self._scored = Step(), Scored()
        self._logp: Tensor | None = None
        self._entropy: Tensor | None = None
        self._generation: Generation | None = None
        self._shelf: Shelf | None = None
        self._vocabulary: int | None = None

    # -- hooks; each runs after the original, inside the guard -------------------------------------

    def logprobs_begin(self, *_: Any, **__: Any) -> None:
        # an evaluation's passes are the evaluation's
        if not torch.is_grad_enabled() and self.trainer.model.training:
            self.clock.enter(StepPhase.REFERENCE)

    def logprobs_computed(self, result: Any, *_: Any, **__: Any) -> None:
        """Keeps the log-probs of the training call only: the old and the reference ones carry no gradient."""
        self.clock.leave(StepPhase.REFERENCE)
        logp = result[0] if isinstance(result, tuple) else result
        if isinstance(logp, Tensor) and not logp.requires_grad:
            self._scored.keep(logp)
        elif isinstance(logp, Tensor):
            self.table.saw(places.LOGPROBS)
            entropy = result[1] if isinstance(result, tuple) and len(result) > 1 else None
            self._logp = logp.detach()
            self._entropy = entropy.detach() if isinstance(entropy, Tensor) else None

    def loss_computed(self, result: Any, model: Any, inputs: Mapping[str, Any], *_: Any, **__: Any) -> None:
        logp, entropy, self._logp, self._entropy = self._logp, self._entropy, None, None
        loss = result[0] if isinstance(result, tuple) else result
        if not self.trainer.model.training or not isinstance(loss, Tensor):
            return
        self.table.saw(places.LOSS)
        shown = inputs if isinstance(inputs, Mapping) else {}
        rows = self._numbering.of(shown)
        batch = measure.MicroBatch(
            inputs=shown,
            logp=logp,
            loss=loss,
            sample_offset=0 if rows is not None else self._sample_offset(logp),
            vocabulary=self._vocabulary,
            entropy=entropy,
            advantages_told=self._step.generated,
        )
        if not self._step.micro_batches:
            with Guard("measuring the KL gradient by the parameters"):
                step, every = int(self.trainer.state.global_step) + 1, self._kl_gradient_every
                self._step.tally += measure_kl_gradient(self.trainer, shown, step=step, every=every)
        self._step.micro_batches += 1
        self._step.entropy_shown |= measure.shows_entropy(batch)
        self._measure(measure.pieces(self.trainer, batch), rows)

    def clipping_begins(self, *_: Any, **__: Any) -> None:
        self._step.add(list(self._optimizer.gradients()))

    def gradient_measured(self, result: Any, *_: Any, **__: Any) -> None:
        self.table.saw(places.CLIP)
        if result is not None and self.ranks.rank == 0:
            self._step.add([of_gradient(result)])

    def generation_begins(self, *_: Any, **__: Any) -> None:
        # Told by the heartbeat only: two journalled changes of phase a step would be noise.
        training = self.trainer.model.training
        self.reporter.current_phase = Phase.ROLLOUT if training else Phase.EVAL
        if training:
            self.clock.enter(StepPhase.ROLLOUT)
            self._logits.begin()
            if facts.rewards_hold_kl(self.trainer):
                self._scored.begin()

    def _logits_seen(self, found: Reduction, seconds: float) -> None:
        self._step.add([found])
        self.reporter.spent(seconds)

    def rewards_begin(self, *_: Any, **__: Any) -> None:
        self._logits.end()
        if self.trainer.model.training:
            self.clock.enter(StepPhase.REWARD)

    def rewards_calculated(
        self,
        result: Any,
        inputs: Any,
        prompts: Any,
        completions: Any,
        completion_ids_list: Any,
        *_: Any,
        **__: Any,
    ) -> None:
        self.clock.leave(StepPhase.REWARD)
        if self.trainer.model.training:
            self.table.saw(places.REWARDS)
            self._generation = Generation(
                prompts=prompts,
                ids=completion_ids_list,
                rewards=result,
                first_sample=self.trainer.accelerator.process_index * len(completion_ids_list),
            )

    def generation_done(self, result: Any, inputs: Any = None, *_: Any, **__: Any) -> None:
        """The rewards came just before; only here is it known which tokens a tool wrote."""
        generation, self._generation = self._generation, None
        scored, training = self._scored.take(), self.trainer.model.training
        self._logits.end()
        self.clock.leave(StepPhase.ROLLOUT)
        self.reporter.current_phase = Phase.UPDATE if training else Phase.EVAL
        shown = result if isinstance(result, Mapping) else {}
        if generation is None and training and not places.patched(self.table, places.REWARDS):
            generation = completions.unpadded(shown, inputs, self.trainer.accelerator.process_index)
        if generation is None or self._reader is None:
            return
        self.table.saw(places.GENERATION)
        step, first = int(self.trainer.state.global_step) + 1, generation.first_sample
        read = self._reader.read(generation, shown, step=step, with_rewards=self.ranks.rank == 0)
        self._step.tally += read.tally
        self._step.add(read.on_device)
        self._step.samples += read.samples
        self._shelf = read.shelf
        self._step.generated = shown.get("advantages") is not None
        self._numbering.learn(shown, first)
        if scored is not None:
            told = reward_kl.pieces(
                self.trainer, scored, shown, read.totals, first=first, vocabulary=self._vocabulary
            )
            self._measure(told, rows=None)

    # -- events ------------------------------------------------------------------------------------

    def train_begins(self, ranks: Ranks) -> None:
        self.ranks = self._teller.ranks = ranks
        self.clock.restart()
        self._teller.withheld = measure.withheld(self.trainer)
        self._vocabulary = facts.embedding_rows(self.trainer)
        self._reader = completions.reader_for(
            self.trainer,
            keep=self._texts,
            reward_range=self._reward_range,
            token_ranges=self._token_ranges,
        )
        self._teller.table = self._reader.text.table
        self._optimizer.first = ranks.rank == 0
        self._teller.absent = (
            self._optimizer.absent()
            + self._logits.absent()
            + Tally(missing=facts.elsewhere() | places.unseen(self.table))
        )
        self.table.tell(self.reporter)
        self._logits.install(self.trainer.accelerator.unwrap_model(self.trainer.model))
        self.reporter.phase(Phase.UPDATE)

    def step_begins(self, learning_rate: float | None) -> None:
        self._step = Step(learning_rate=learning_rate)
        self.clock.enter(StepPhase.UPDATE)

    def optimizer_begins(self) -> None:
        self._optimizer.step_begins(int(self.trainer.state.global_step))

    def optimizer_done(self) -> None:
        self._step.add(list(self._optimizer.step_done()))

    def step_ends(self, step: int) -> None:
        """Collective over ranks. On a GPU with several ranks a step is told one step later, when it is copied."""
        finished = Finished(step=step, values={}, tally=Tally.zero(), pending=None)
        with Guard("measuring the step"):
            began = time.perf_counter()
            finished = self._finish(step)
            self.reporter.spent(time.perf_counter() - began)
        self._teller.tell(finished)
        with Guard("telling of the hooks"):
            self.table.saw(places.STEPS)
            self.table.step_ends(self.reporter, step)

    def logged(self, step: int, logs: Mapping[str, Any]) -> None:
        """Steps are measured, not read off the log; what an evaluation found stands only there."""
        self.table.saw(places.LOG)
        evaluated = {name: value for name, value in logs.items() if is_evaluated(name)}
        if evaluated and self.reporter.enabled:
            self.reporter.report(step, evaluated)

    def settle(self) -> None:
        """Nothing waits for a pause here."""

    def train_ends(self) -> None:
        self._teller.settle()
        self.ranks.leave()
        self._logits.remove()
        self.reporter.phase(Phase.FINISHED)

    def checkpoint_saved(self, step: int, folder: str) -> None:
        self.reporter.event(EventKind.CHECKPOINT, step, folder=folder)

    # -- inside ------------------------------------------------------------------------------------

    def _finish(self, step: int) -> Finished:
        done, self._step, self._logp, self._entropy = self._step, Step(), None, None
        self.clock.leave(StepPhase.UPDATE)
        done.tally += self.clock.take() + self._optimizer.memory()
        for sample in done.samples:
            self._teller.tell_sample(step, sample)
        pending = Pending(done.on_device) if done.on_device else None
        fresh = self._tail.new(of_training(self.trainer))
        values = read_step_values(
            self.trainer, fresh, done, rewards_shown=places.patched(self.table, places.REWARDS)
        )
        kept = frozenset(sample.sample for sample in done.samples)
        return Finished(step=step, values=values, tally=done.tally, pending=pending, shelf=self._shelf, kept=kept)

    def _measure(self, told: Iterable[Piece], rows: Tensor | None) -> None:
        for what, launch in told:
            with Guard(f"measuring {what}"):
                found = launch()
                self._step.add([found if rows is None else numbered(found, rows)])

    def _sample_offset(self, logp: Tensor | None) -> int:
        """Where a row cannot be known again: its place among the rows that were trained on."""
        rows = logp.shape[0] if logp is not None else 0
        accumulation = getattr(self.trainer, "current_gradient_accumulation_steps", 1)
        return (self.ranks.rank * accumulation + self._step.micro_batches) * rows
