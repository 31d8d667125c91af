"""In OpenRLHF's controller: one run's hooks on live objects, the step boundary, and the word with the actor ranks.

Nothing of the training is in flight where a step ends, so that holding the controller there holds everybody.
"""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import rlvitals
from rlvitals.contract.report import EventKind, Phase
from rlvitals.guard import Guard, attempt
from rlvitals.integrations.hooks import HookTable, wrap
from rlvitals.integrations.loop import Vitals
from rlvitals.integrations.openrlhf import rank, told
from rlvitals.integrations.openrlhf.arguments import Arguments, installed_version
from rlvitals.integrations.openrlhf.control import ANSWER_S, STATE, Steering
from rlvitals.integrations.openrlhf.experiences import (
    Completions,
    explained_variance,
    reference_of,
    reference_pieces,
)
from rlvitals.integrations.openrlhf.places import BOUNDARY, EVALUATION, EXPERIENCES, FIT, RANKS, REFERENCE
from rlvitals.integrations.pieces import Piece
from rlvitals.probes.tally import Tally

CALLER = "__ray_call__"


def _counted(_: float) -> None:
    """What these hooks call counts its time itself."""


def watching(trainer: Any, environment: Mapping[str, str], fit: Callable[[], Any]) -> Any:
    """Runs a controller's ``fit`` under watch: its result and its errors are its own."""
    watch = begin(trainer, environment)
    try:
        result = fit()
    except BaseException:
        end(watch, Phase.FAILED)
        raise
    end(watch, Phase.FINISHED)
    return result


def begin(trainer: Any, environment: Mapping[str, str]) -> Controller | None:
    """None where it cannot be watched at all."""
    with Guard("watching OpenRLHF's controller"):
        for name, value in environment.items():
            os.environ.setdefault(name, value)
        watch = Controller(trainer)
        watch.install()
        return watch
    return None


def end(watch: Controller | None, phase: Phase) -> None:
    with Guard("ending the watch"):
        if watch is not None:
            watch.close(phase)


class Controller:
    """One training, in the process of its ``PPOTrainer`` or ``TrainingActor``."""

    def __init__(self, trainer: Any) -> None:
        release = installed_version()
        self.trainer, self.arguments = trainer, Arguments(trainer.args, release)
        self.table = HookTable("openrlhf", release)
        self.absent = told.absent_reasons(self.arguments, critic=trainer.critic_model_group is not None)
        self._references: dict[int, Any] = {}
        self._expected: float | None = None
        self._explained: float | None = None
        self._pieces: list[Piece] = []
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="rlvitals")
        self._reading: Future[None] | None = None
        self.steering = Steering(trainer, self.arguments, trainer.save_logs_and_checkpoints, self.ask)
        states = attempt(self._checkpoint_states) if self.arguments.get("resumes", False) else None
        restored = self.steering.restored(states)
        self.vitals = self._run()
        if restored is not None:
            self._expected = restored
            self.vitals.reporter.event(EventKind.NOTE, None, kl_coef_restored=restored)

    def install(self) -> None:
        """Hooks this controller, its experience maker and its actor ranks; each may fail without the others."""
        self.table.add(FIT.name, f"{type(self.trainer).__name__}.fit", FIT.gives, patched=True)
        self.table.saw(FIT.name)
        self._wrap(self.trainer, BOUNDARY, before=self._before_boundary, after=self._step_ends)
        maker = getattr(self.trainer, "experience_maker", None)
        self._wrap(
            maker,
            EXPERIENCES,
            before=self._before_advantages,
            after=self._after_advantages,
            spent=self._spent,
        )
        self._wrap(self.trainer, EVALUATION, after=self._evaluated)
        if not self.arguments.kl_in_loss and self.arguments.kl_coef > 0:
            module = importlib.import_module(type(maker).__module__)
            self._wrap(module, REFERENCE, after=self._reference, spent=self._spent)
        with Guard("hooking the actor ranks"):
            rows = self.ask(rank.install, told.for_ranks(self.arguments, len(self._handles())))
            blind = [row for row in rows[0] if row["state"] == "absent" and not row["optional"]]
            why = "; ".join(str(row["why"]) for row in blind)
            self.table.add(RANKS.name, RANKS.target, RANKS.gives, patched=not blind, why=why)
        if RANKS.name not in {hook.name for hook in self.table}:
            self.table.add(RANKS.name, RANKS.target, RANKS.gives, patched=False, why="the ranks did not answer")
        with Guard("offering commands"):
            self.steering.offer(self.vitals)
        self.table.tell(self.vitals.reporter)

    def close(self, phase: Phase) -> None:
        self._pool.shutdown(wait=phase is not Phase.FAILED)
        self.vitals.close(phase)

    def ask(self, call: Callable[..., Any], *arguments: Any) -> list[Any]:
        """One answer of each actor rank; those that hold the same part of a batch count once."""
        import ray

        calls = [getattr(handle, CALLER).remote(call, *arguments) for handle in self._handles()]
        answers: list[Any] = ray.get(calls, timeout=ANSWER_S)
        return answers

    # -- what the trainer shows --------------------------------------------------------------------

    def _reference(self, result: Any, logp: Any, reference: Any = None, *_: Any, **__: Any) -> None:
        """The one place where the reference is still known when its KL goes into the reward."""
        if reference is not None:
            self._references[id(logp)] = (logp, reference)
            self.table.saw(REFERENCE.name)

    def _before_advantages(self, experiences: Sequence[Any], *_: Any, **__: Any) -> None:
        references, self._references = self._references, {}
        if self.arguments.kl_coef <= 0 or self.arguments.kl_in_loss:
            return
        form, coefficient = self.arguments.form, self.steering.kl_coef()
        for experience in experiences:
            _, reference = references.get(id(experience.action_log_probs), (None, None))
            if reference is None:
                reference = reference_of(experience, str(self.arguments.get("kl_estimator", "k1")))
            if reference is None:
                continue
            self._pieces += reference_pieces(experience, reference, form, coefficient)

    def _after_advantages(self, result: Any, *_: Any, **__: Any) -> None:
        """Copies what is told, and reads it on a thread of ours while the ranks train."""
        self.vitals.reporter.current_phase = Phase.UPDATE
        pieces, self._pieces = self._pieces, []
        completions = Completions.of(result)
        self._explained = explained_variance(result)
        self._reading = self._pool.submit(self._read, completions, pieces)
        if completions.ids.size:
            self.table.saw(EXPERIENCES.name)

    def _read(self, completions: Completions, pieces: Sequence[Piece]) -> None:
        for what, launch in pieces:
            with Guard(f"measuring {what}"):
                self.vitals.add(launch().tally())
        self.vitals.rollout(
            completions.ids,
            completions.chosen,
            rewards=completions.rewards,
            advantages=completions.advantages,
            finish_reasons=completions.finish_reasons,
            prompts=completions.prompts,
        )

    def _evaluated(self, result: Any, metrics: Any, step: int, *_: Any, **__: Any) -> None:
        self.vitals.evaluation(int(step), told.numbers(metrics or {}))
        self.table.saw(EVALUATION.name)

    def _before_boundary(self, step: int, logs: Any = None, client_states: Any = None, *_: Any, **__: Any) -> None:
        self.steering.remember(int(step), client_states)

    def _step_ends(self, result: Any, step: int, logs: Any = None, *_: Any, **__: Any) -> None:
        began = time.perf_counter()
        reading, self._reading = self._reading, None
        with Guard("reading the completions"):
            if reading is not None:
                reading.result()
        with Guard("asking the actor ranks"):
            self._add(self.ask(rank.take), int(step))
        values = told.scalars(logs or {})
        explained, self._explained = self._explained, None
        if explained is not None:
            values["critic.explained_variance"] = explained
        self.vitals.reporter.spent(time.perf_counter() - began)
        self.table.saw(BOUNDARY.name)
        if self.steering.saved_at == int(step):
            self.vitals.checkpoint_saved(int(step), self.steering.folder(int(step)))
        self.vitals.gradient(values.pop("gradient.norm", None))
        self.table.step_ends(self.vitals.reporter, int(step))
        before = self.steering.kl_coef()
        self.vitals.reporter.current_phase = Phase.ROLLOUT
        self.vitals.step(int(step), values)
        if self.steering.kl_coef() != before:
            self._expected = self.steering.kl_coef()

    # -- inside ------------------------------------------------------------------------------------

    def _run(self) -> Vitals:
        arguments = self.arguments
        form, (low, high), cap = arguments.form, arguments.epsilons, arguments.get("length_cap")
        model = str(arguments.get("model", ""))
        own_name = os.environ.get("RLVITALS_RUN_NAME") or str(arguments.get("run_name", ""))
        return rlvitals.run(
            framework="openrlhf",
            name=own_name,
            model=model,
            config={**arguments.config(), **told.world(self.trainer, len(self._handles()))},
            tokenizer=getattr(self.trainer, "tokenizer", None),
            embedding_rows=told.embedding_rows(model),
            stop_ids=told.stop_ids(getattr(self.trainer, "tokenizer", None), model),
            length_cap=None if cap is None else int(cap),
            group_size=int(arguments.get("group_size", 1)),
            kl_coef=self.steering.kl_coef,
            kl_estimator=form.estimator,
            kl_clamp=form.clamp,
            loss_type="grpo" if arguments.by_sequence else "dapo",
            epsilon=low,
            epsilon_high=high,
            absent=self.absent,
        )

    def _add(self, answers: Sequence[rank.Shown | None], step: int) -> None:
        shown = [answer for answer in answers if answer is not None]
        for answer in shown:
            tally = Tally.from_dict(answer.tally)
            missing = {name: why for name, why in tally.missing.items() if name not in self.absent}
            self.vitals.add(replace(tally, missing=missing))
        if any(answer.micro_batches for answer in shown):
            self.table.saw(RANKS.name)
        failing = next((row for answer in shown for row in answer.hooks if row["state"] == "failing"), None)
        if failing is not None:
            self.table.failed(RANKS.name, f"{failing['hook']}: {failing['why']}")
        if self._expected is not None and shown and all(answer.coefficients for answer in shown):
            told_ranks = {str(answer.rank): list(answer.coefficients) for answer in shown}
            self.vitals.reporter.event(EventKind.NOTE, step, kl_coef_on_ranks=told_ranks)
            self._expected = None
        self.vitals.reporter.spent(max((answer.seconds for answer in shown), default=0.0))

    def _checkpoint_states(self) -> Mapping[str, Any]:
        import ray

        group = self.trainer.actor_model_group
        states: Mapping[str, Any] = ray.get(
            group.async_run_method(method_name="get_checkpoint_states"), timeout=ANSWER_S
        )[0]
        return states if STATE in states else {}

    def _handles(self) -> list[Any]:
        """The actor ranks' handles, one of each that work on the same part of a batch."""
        group = self.trainer.actor_model_group
        handles: list[Any] = group._actor_handlers[:: max(1, int(getattr(group, "duplicate_actors", 1)))]
        return handles

    def _spent(self, seconds: float) -> None:
        self.vitals.reporter.spent(seconds)

    def _wrap(self, owner: Any, place: Any, *, after: Any, before: Any = None, spent: Any = _counted) -> None:
        done = owner is not None and wrap(
            owner, place.attribute, before=before, after=after, spent=spent, table=self.table, hook=place.name
        )
        why = "" if done else f"this release of OpenRLHF has no {place.target}"
        self.table.add(place.name, place.target, place.gives, patched=done, why=why, optional=place.optional)
