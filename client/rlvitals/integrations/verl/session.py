"""One verl trainer in the process that drives it: batches and scalars in, reports and commands out.

Built on `rlvitals.run`. Whatever taps a trainer (V1's metrics, the caller's frame of ``Tracking.log`` in others)
calls `session_of(trainer)`, then `batch`, `step_ends` or `scalars`. Callers keep errors (`rlvitals.guard`).
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rlvitals.contract.command import CommandKind
from rlvitals.contract.report import EventKind, Phase
from rlvitals.guard import Guard, attempt, outcome
from rlvitals.integrations.loop.start import run
from rlvitals.integrations.steering import Refused
from rlvitals.integrations.verl.asking import Workers
from rlvitals.integrations.verl.places import hooks as hooks
from rlvitals.integrations.verl.scalars import evaluation, is_step, told
from rlvitals.integrations.verl.settings import Settings
from rlvitals.integrations.verl.signals import absent_reasons, embedding_rows, forward, stop_ids
from rlvitals.reporter import Reporter

_SESSIONS: weakref.WeakKeyDictionary[Any, Session] = weakref.WeakKeyDictionary()


def session_of(trainer: Any, *, shape: str = "") -> Session:
    """The session of a trainer, made at first use. ``shape`` is told with the run: "V1", "V0", …"""
    if trainer not in _SESSIONS:
        _SESSIONS[trainer] = Session(trainer, shape=shape)
    return _SESSIONS[trainer]


def known_session(trainer: Any) -> Session | None:
    """The session of a trainer that has begun a run."""
    return _SESSIONS.get(trainer)


class Session:
    """``vitals`` is the run, ``settings`` the job's; ``coefficient`` reads the KL coefficient in force.

    ``obeys`` says whether `step_ends` carries out commands; a trainer with a better place for them calls `obey`.
    """

    def __init__(self, trainer: Any, *, shape: str = "") -> None:
        self.trainer = weakref.proxy(trainer)
        self.settings = Settings.of(getattr(trainer, "config", None))
        self.hooks = hooks()
        self.hooks.version = self.settings.version
        self.obeys = True
        self.kl_coef = self.settings.kl.coefficient if self.settings.kl is not None else None
        self.last_finite_step: int | None = None
        self._ended: int | None = None
        self._as_it_was: float | None = None
        tokenizer = getattr(trainer, "tokenizer", None)
        low, high = self.settings.epsilons
        term = self.settings.kl
        self.vitals = run(
            project=_text(self.settings.get("trainer.project_name")),
            name=_text(self.settings.get("trainer.experiment_name")) or "",
            framework="verl",
            config={**self.settings.named(), "trainer_shape": shape},
            model=_text(self.settings.get("actor_rollout_ref.model.path")) or "",
            tokenizer=tokenizer,
            stop_ids=stop_ids(trainer, self.settings),
            embedding_rows=embedding_rows(self.settings),
            length_cap=self.settings.length_cap,
            group_size=self.settings.whole("actor_rollout_ref.rollout.n"),
            kl_coef=self.coefficient if term is not None else None,
            kl_estimator=term.estimator if term is not None else "k3",
            kl_clamp=term.clamp if term is not None else None,
            epsilon=low,
            epsilon_high=high,
            absent=absent_reasons(self.settings),
        )
        self._workers = Workers(trainer)
        self._finish = weakref.finalize(trainer, self.vitals.close)
        self.reporter.event(EventKind.NOTE, None, verl_plugin="connected", trainer=type(trainer).__name__)

    @property
    def reporter(self) -> Reporter:
        return self.vitals.reporter

    def coefficient(self) -> float:
        """The KL coefficient in force: the reward controller's own, or what the workers' loss was last told."""
        if self._as_it_was is not None:
            return self._as_it_was
        controller = getattr(self.trainer, "kl_ctrl_in_reward", None) or getattr(self.trainer, "kl_ctrl", None)
        term = self.settings.kl
        if term is not None and term.place == "reward" and controller is not None:
            return float(controller.value)
        return 0.0 if self.kl_coef is None else self.kl_coef

    def batch(self, columns: Mapping[str, Any], *, step: int) -> None:
        """Tells of a batch, ``columns`` by verl's own names: jagged or padded (B, T) tensors, arrays, lists."""
        forward(self.vitals, self.settings, columns, getattr(self.trainer, "tokenizer", None))
        self.hooks.saw("batch")

    @contextmanager
    def as_it_was(self, coefficient: float | None) -> Iterator[None]:
        """Within it a step counts as made with another coefficient than the one that holds from now on."""
        self._as_it_was = coefficient
        try:
            yield
        finally:
            self._as_it_was = None

    def scalars(self, step: int, data: Mapping[str, Any]) -> None:
        """What is logged outside a training step: a validation before the first one, at its own cadence."""
        self.hooks.saw("scalars")
        found = evaluation(data)
        if found:
            self.vitals.evaluation(step, found)

    def step_ends(self, step: int, data: Mapping[str, Any]) -> None:
        """Reports a training step, once; carries out commands where `obeys`. ``data`` is what verl logs."""
        if step == self._ended:
            return
        self._ended = step
        self.hooks.saw("scalars")
        values = told(data)
        if "actor/grad_norm" in data:
            self.vitals.gradient(attempt(float, data["actor/grad_norm"]))
        self.was_finite(step, data)
        with Guard("asking the workers"):
            self._workers.tell(self.vitals)
        self.vitals.report(step, values)
        found = evaluation(data)
        if found:
            self.vitals.evaluation(step, found)
        with Guard("the table of hooks"):
            self.hooks.step_ends(self.reporter, step)
        if self.obeys:
            self.vitals.obey(step)

    def logged(self, step: int, data: Mapping[str, Any]) -> None:
        """What any trainer hands to ``Tracking.log``: a training step, or something else."""
        if is_step(data):
            self.step_ends(step, data)
        else:
            self.scalars(step, data)

    def obey(self, step: int) -> None:
        """Carries out what has been asked for, and holds as long as a pause does. Between two steps only."""
        self.vitals.obey(step)

    def close(self, phase: Phase = Phase.FINISHED) -> None:
        """Says how the training has ended, once."""
        if self._finish.detach() is not None:
            self.vitals.close(phase)

    def was_finite(self, step: int, data: Mapping[str, Any]) -> None:
        """Remembers the last step whose gradient was finite, as verl logged it."""
        norm = attempt(float, data["actor/grad_norm"]) if "actor/grad_norm" in data else None
        if norm is None or math.isfinite(norm):
            self.last_finite_step = step

    def refuse_poison(self, step: int) -> None:
        """Raises `Refused` where weights are not finite; nothing where the workers cannot be asked."""
        counts, _ = outcome(self._workers.poisoned)
        if counts:
            known = "none" if self.last_finite_step is None else self.last_finite_step
            raise Refused(
                f"{counts} parameters hold NaN or infinities at step {step}: a checkpoint would be worth nothing. "
                f"The last step with a finite gradient is {known}"
            )

    def cannot(self, kind: CommandKind, reason: str) -> None:
        self.vitals.cannot(kind, reason)


def _text(value: object) -> str | None:
    return None if value is None else str(value)
