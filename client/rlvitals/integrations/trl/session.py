"""One attached trainer: what its hooks saw in this optimizer step, and what is reported when the step ends."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from torch import Tensor

from rlvitals.contract.report import EventKind, Phase
from rlvitals.guard import Guard
from rlvitals.integrations.trl import completions, facts, measure
from rlvitals.integrations.trl.completions import Generation, Reader
from rlvitals.integrations.trl.metrics_tail import Tail, is_users_own, mean
from rlvitals.integrations.trl.ranks import Ranks
from rlvitals.integrations.trl.steps import Finished, Step
from rlvitals.integrations.trl.telling import Teller
from rlvitals.probes.reduction import Pending
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
    ) -> None:
        self.trainer, self.reporter = trainer, reporter
        self.ranks = Ranks()
        self._teller = Teller(reporter=reporter, ranks=self.ranks)
        self._texts, self._reward_range = texts and reporter.enabled, reward_range
        self._reader: Reader | None = None
        self._tail = Tail()
        self._step = Step()
        self._logp: Tensor | None = None
        self._generation: Generation | None = None
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
            advantages_told=self._step.generated,
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
        shown = result if isinstance(result, Mapping) else {}
        step = int(self.trainer.state.global_step) + 1
        tally, samples = self._reader.read(generation, shown, step=step, with_rewards=self.ranks.rank == 0)
        self._step.tally += tally
        self._step.generated = shown.get("advantages") is not None
        self._step.samples += samples

    # -- events ------------------------------------------------------------------------------------

    def train_begins(self, ranks: Ranks) -> None:
        self.ranks = self._teller.ranks = ranks
        self._teller.withheld = measure.withheld(self.trainer)
        self._vocabulary = facts.embedding_rows(self.trainer)
        self._reader = completions.reader_for(self.trainer, keep=self._texts, reward_range=self._reward_range)
        self._teller.table = self._reader.text.table
        self.reporter.phase(Phase.UPDATE)

    def step_begins(self, learning_rate: float | None) -> None:
        self._step = Step(learning_rate=learning_rate)

    def step_ends(self, step: int) -> None:
        """Collective over ranks. On a GPU with several ranks a step is told one step later, when it is copied."""
        finished = Finished(step=step, values={}, tally=Tally.zero(), pending=None)
        with Guard("measuring the step"):
            finished = self._finish(step)
        self._teller.tell(finished)

    def train_ends(self) -> None:
        self._teller.settle()
        self.reporter.phase(Phase.FINISHED)

    def checkpoint_saved(self, step: int, folder: str) -> None:
        self.reporter.event(EventKind.CHECKPOINT, step, folder=folder)

    # -- inside ------------------------------------------------------------------------------------

    def _finish(self, step: int) -> Finished:
        done, self._step, self._logp = self._step, Step(), None
        for sample in done.samples:
            self._teller.tell_sample(step, sample)
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

    def _sample_offset(self, rows: int) -> int:
        accumulation = getattr(self.trainer, "current_gradient_accumulation_steps", 1)
        return (self.ranks.rank * accumulation + self._step.micro_batches) * rows
