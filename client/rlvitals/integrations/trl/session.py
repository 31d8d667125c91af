"""One attached trainer: what its hooks saw in this optimizer step, and what is reported when the step ends."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from torch import Tensor

from rlvitals.contract.report import EventKind, Phase
from rlvitals.guard import Guard
from rlvitals.integrations.trl import completions, facts, measure
from rlvitals.integrations.trl.completions import Generation, Reader, Sample
from rlvitals.integrations.trl.metrics_tail import Tail, is_users_own, mean
from rlvitals.integrations.trl.ranks import Ranks
from rlvitals.probes.measured import Measured
from rlvitals.probes.reduction import Pending, Reduction
from rlvitals.probes.tally import Tally
from rlvitals.reporter import Reporter, Resolved

REUSED = "no generation in this step: it trains on the previous one's completions"
NO_NORM = "the trainer computed no gradient norm in this step"
GENERATED = (
    *completions.TEXT_METRICS,
    "length.mean",
    "length.min",
    "length.max",
    "length.truncation_rate",
    "length.stop_rate",
    "length.empty_rate",
    "length.completions",
    "reward.mean",
    "reward.std",
    "reward.min",
    "reward.max",
    "reward.group_std",
    "reward.zero_std_groups",
)


@dataclass(slots=True)
class Step:
    """What one optimizer step has shown so far. ``on_device`` waits for its one copy to the host."""

    tally: Tally = field(default_factory=Tally.zero)
    on_device: list[Reduction] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    micro_batches: int = 0
    learning_rate: float | None = None
    began_s: float = field(default_factory=time.perf_counter)

    def add(self, found: Sequence[Reduction]) -> None:
        """On a CPU the sums are taken on the spot; on a device they stay there until the step ends."""
        for reduction in found:
            if reduction.parts[0].is_cuda:
                self.on_device.append(reduction)
            else:
                self.tally += reduction.tally()


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A step on its way out: its scalars, and a tally that may still lack what is on the device."""

    step: int
    values: Mapping[str, float]
    tally: Tally
    pending: Pending | None


class Session:
    """Lives on every rank; only rank 0's reporter is enabled."""

    def __init__(self, trainer: Any, reporter: Reporter, *, texts: bool = True) -> None:
        self.trainer, self.reporter = trainer, reporter
        self.ranks = Ranks()
        self._texts = texts and reporter.enabled
        self._reader: Reader | None = None
        self._tail = Tail()
        self._step = Step()
        self._logp: Tensor | None = None
        self._generation: Generation | None = None
        self._waiting: Finished | None = None
        self._withheld: dict[str, str] = {}
        self._vocabulary: int | None = None

    # -- hooks; each runs after the original, inside the guard -------------------------------------

    def logprobs_computed(self, result: Any, *_: Any, **__: Any) -> None:
        """Keeps the log-probs of the training call only: the old and the reference ones carry no gradient."""
        logp = result[0] if isinstance(result, tuple) else result
        if isinstance(logp, Tensor) and logp.requires_grad:
            self._logp = logp.detach()

    def loss_computed(self, result: Any, model: Any, inputs: Mapping[str, Any], *_: Any, **__: Any) -> None:
        logp, self._logp = self._logp, None
        loss = result[0] if isinstance(result, tuple) else result
        if not self.trainer.model.training or not isinstance(loss, Tensor):
            return
        rows = logp.shape[0] if logp is not None else 0
        batch = measure.MicroBatch(
            inputs=inputs if isinstance(inputs, Mapping) else {},
            logp=logp,
            loss=loss,
            sample_offset=self._sample_offset(rows),
            vocabulary=self._vocabulary,
        )
        self._step.micro_batches += 1
        self._step.add(list(measure.reductions(self.trainer, batch)))

    def gradient_measured(self, result: Any, *_: Any, **__: Any) -> None:
        if result is not None and self.ranks.rank == 0:
            self._step.add([measure.of_gradient(result)])

    def generation_begins(self) -> None:
        # Told by the heartbeat only: two journalled changes of phase a step would be noise.
        self.reporter.current_phase = Phase.ROLLOUT if self.trainer.model.training else Phase.EVAL

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
        if self.trainer.model.training:
            self._generation = Generation(
                prompts=prompts,
                ids=completion_ids_list,
                rewards=result,
                first_sample=self.trainer.accelerator.process_index * len(completion_ids_list),
            )

    def generation_done(self, result: Any, *_: Any, **__: Any) -> None:
        """The rewards came just before; only here is it known which tokens a tool wrote."""
        generation, self._generation = self._generation, None
        self.reporter.current_phase = Phase.UPDATE if self.trainer.model.training else Phase.EVAL
        if generation is None or self._reader is None:
            return
        tools = result.get("tool_mask") if isinstance(result, Mapping) else None
        tally, samples = self._reader.read(generation, tools, with_rewards=self.ranks.rank == 0)
        self._step.tally += tally
        self._step.samples += samples

    # -- events ------------------------------------------------------------------------------------

    def train_begins(self, ranks: Ranks) -> None:
        self.ranks = ranks
        self._withheld = measure.withheld(self.trainer)
        self._vocabulary = facts.embedding_rows(self.trainer)
        self._reader = completions.reader_for(self.trainer, keep=self._texts)
        self.reporter.phase(Phase.UPDATE)

    def step_begins(self, learning_rate: float | None) -> None:
        self._step = Step(learning_rate=learning_rate)

    def step_ends(self, step: int) -> None:
        """Collective over ranks. On a GPU with several ranks a step is told one step later, when it is copied."""
        finished = Finished(step=step, values={}, tally=Tally.zero(), pending=None)
        with Guard("measuring the step"):
            finished = self._finish(step)
        if self.ranks.alone:
            self._report_alone(finished)
        elif finished.pending is None:
            self._report_together(finished)
        else:
            self._settle()
            self._waiting = finished

    def train_ends(self) -> None:
        self._settle()
        self.reporter.phase(Phase.FINISHED)

    def checkpoint_saved(self, step: int, folder: str) -> None:
        self.reporter.event(EventKind.CHECKPOINT, step, folder=folder)

    # -- inside ------------------------------------------------------------------------------------

    def _finish(self, step: int) -> Finished:
        done, self._step, self._logp = self._step, Step(), None
        for sample in done.samples:
            self._tell(step, sample)
        pending = Pending(done.on_device) if done.on_device else None
        return Finished(step=step, values=self._scalars(done), tally=done.tally, pending=pending)

    def _scalars(self, done: Step) -> dict[str, float]:
        state = self.trainer.state
        fresh = self._tail.new(getattr(self.trainer, "_metrics", {}).get("train", {}))
        values = {key: mean(numbers) for key, numbers in fresh.items() if is_users_own(key)}
        values["progress.step_time"] = time.perf_counter() - done.began_s
        if state.epoch is not None:
            values["progress.epoch"] = float(state.epoch)
        if getattr(state, "num_input_tokens_seen", 0):
            values["progress.tokens"] = float(state.num_input_tokens_seen)
        if "entropy" in fresh:
            values["policy.entropy"] = mean(fresh["entropy"])
        if done.learning_rate is not None:
            values["policy.learning_rate"] = done.learning_rate
        coefficient = facts.kl_coef(self.trainer)
        if coefficient is not None:
            values["kl.coef"] = coefficient
        return values

    def _report_alone(self, finished: Finished) -> None:
        pending = finished.pending
        if pending is None:
            self._write(finished, finished.tally)
            return
        self.reporter.report_when(finished.step, pending.ready, partial(self._resolved, finished, pending))

    def _resolved(self, finished: Finished, pending: Pending) -> Resolved:
        found = self._measured(finished, finished.tally + pending.tally())
        return found.values, found.missing, found.extremes

    def _report_together(self, finished: Finished) -> None:
        tally = finished.tally
        with Guard("waiting for the device"):
            tally = tally + finished.pending.tally() if finished.pending else tally
        self._write(finished, self.ranks.gather(tally))

    def _settle(self) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            self._report_together(waiting)

    def _write(self, finished: Finished, tally: Tally) -> None:
        with Guard("reporting the step"):
            if not self.reporter.enabled:
                return
            found = self._measured(finished, tally)
            self.reporter.report(finished.step, found.values, missing=found.missing, extremes=found.extremes)
            for metric, (edges, counts) in found.histograms.items():
                self.reporter.histogram(finished.step, metric, edges, counts)

    def _measured(self, finished: Finished, tally: Tally) -> Measured:
        """The registry's values of a merged tally, beside the scalars and the reasons for what is missing."""
        found = tally.measured()
        values = {**finished.values, **found.values}
        missing = {
            **dict.fromkeys(GENERATED, REUSED),
            measure.GRADIENT: NO_NORM,
            **found.missing,
            **self._withheld,
        }
        if measure.LOSS in tally.sums:
            values[measure.LOSS] = tally.sums[measure.LOSS] / self.ranks.size
        if measure.GRADIENT in tally.sums:
            values[measure.GRADIENT] = tally.sums[measure.GRADIENT]
        values = {name: value for name, value in values.items() if name not in self._withheld}
        named = Measured(values=values, extremes=found.extremes, histograms=found.histograms)
        if self._reader is not None and self._reader.table is not None:
            named = self._reader.table.named(named)
        return Measured(
            values=values,
            missing={name: reason for name, reason in missing.items() if name not in values},
            extremes=named.extremes,
            histograms=named.histograms,
        )

    def _tell(self, step: int, sample: Sample) -> None:
        self.reporter.text(
            step,
            sample.sample,
            sample.completion,
            prompt=sample.prompt,
            token_ids=sample.token_ids,
            reward=sample.reward,
            truncated=sample.truncated,
            invalid_utf8=sample.invalid_utf8,
            why=sample.why,
        )

    def _sample_offset(self, rows: int) -> int:
        accumulation = getattr(self.trainer, "current_gradient_accumulation_steps", 1)
        return (self.ranks.rank * accumulation + self._step.micro_batches) * rows
