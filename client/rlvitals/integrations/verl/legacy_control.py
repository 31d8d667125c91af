"""What people ask of verl's V0 trainers: carried out between two steps, read back from every rank."""

from __future__ import annotations

import math
import os
import weakref
from collections.abc import Callable
from typing import Any

from rlvitals.contract.command import CommandKind
from rlvitals.integrations.loop.commands import Later
from rlvitals.integrations.steering import Refused
from rlvitals.integrations.verl import ranks_of_workers as ranks
from rlvitals.integrations.verl.session import Session
from rlvitals.integrations.verl.settings import ACTOR, NO_KL

EVERY = 1
"""A save frequency, in steps."""
TORCH = ("fsdp", "fsdp2")
NO_WORKERS = "this trainer shows no workers that carry out a function (execute_with_func_generator)"
NO_SCHEDULE = "the workers' optimizer is not torch's own (Megatron keeps its own schedule)"
DISTILS = "the loss is that of distillation here: the KL coefficient is not what weighs it"
NO_KL_THERE = "the workers' loss shows no coefficient of a KL term"


def steer(session: Session, trainer: Any, checkpoints: Checkpoints | None = None) -> Checkpoints:
    """Registers the commands that this trainer can carry out, and says why it cannot the others."""
    checkpoints = Checkpoints(trainer, session.refuse_poison) if checkpoints is None else checkpoints
    session.vitals.on(CommandKind.CHECKPOINT, checkpoints.save)
    session.vitals.on(CommandKind.STOP, checkpoints.stop)
    _steer_kl(session, trainer)
    group = getattr(trainer, "actor_rollout_wg", None)
    if not hasattr(group, "execute_with_func_generator"):
        session.cannot(CommandKind.SCALE_LR, NO_WORKERS)
    elif str(session.settings.get(f"{ACTOR}strategy", "fsdp")) not in TORCH:
        session.cannot(CommandKind.SCALE_LR, NO_SCHEDULE)
    else:
        session.vitals.on(
            CommandKind.SCALE_LR,
            lambda factor: _same(ranks.on_each_rank(group, ranks.scale_rate, factor), NO_SCHEDULE),
            lambda: _same(ranks.on_each_rank(group, ranks.read_rate), NO_SCHEDULE),
        )
    return checkpoints


def _steer_kl(session: Session, trainer: Any) -> None:
    term, kind = session.settings.kl, CommandKind.SET_KL_COEF
    group = getattr(trainer, "actor_rollout_wg", None)
    controller = getattr(trainer, "kl_ctrl_in_reward", None) or getattr(trainer, "kl_ctrl", None)
    if term is None or (term.place == "reward" and controller is None):
        session.cannot(kind, NO_KL)
    elif term.place == "reward":
        session.vitals.on(kind, lambda value: setattr(controller, "value", value), session.coefficient)
    elif session.settings.distills:
        session.cannot(kind, DISTILS)
    elif not hasattr(group, "execute_with_func_generator"):
        session.cannot(kind, NO_WORKERS)
    else:
        session.vitals.on(kind, lambda value: _set_in_loss(session, group, value), session.coefficient)


def _set_in_loss(session: Session, group: Any, value: float) -> None:
    """On all ranks: the driver's configuration is a copy that no loss reads. Raises `Refused` with the reason."""
    session.kl_coef = _same(ranks.on_each_rank(group, ranks.set_kl, value), NO_KL_THERE)


def _same(values: list[float], missing: str) -> float:
    """What all ranks answered. Raises `Refused` where one has none, or another."""
    if not values or any(math.isnan(value) for value in values):
        raise Refused(missing)
    if len(set(values)) > 1:
        raise Refused(f"the ranks do not agree afterwards: {min(values):g} … {max(values):g}")
    return values[0]


def is_last(trainer: Any) -> bool:
    """Whether the step that has just been logged was the last one."""
    step, total = getattr(trainer, "global_steps", None), getattr(trainer, "total_training_steps", None)
    return step is not None and total is not None and int(step) >= int(total)


class Checkpoints:
    """A trainer's checkpoints, and its end.

    Up to 0.7.0 a rollout engine sleeps while a step is logged, and a checkpoint is written at once. Since 0.7.1 it
    has been given its weights back by then, and writing beside it may exhaust a GPU's memory: there verl itself
    writes the checkpoint at the end of the next step, before it wakes the engine.
    """

    def __init__(self, trainer: Any, refuse_poison: Callable[[int], None] = lambda step: None) -> None:
        self._trainer: Any = weakref.proxy(trainer)
        self._refuse_poison = refuse_poison
        self.by_command = False
        self._saved: int | None = None
        self._users_frequency: int | None = None

    def save(self, step: int) -> str | Later:
        """The folder that has been written, or the step whose end will write it.

        Raises `Refused` where the weights are not finite.
        """
        if self._saved != step:
            self._refuse_poison(step)
        if self._engine_is_awake:
            if self._users_frequency is None:
                self._users_frequency = self._frequency
            self._frequency = EVERY
            return Later(step + 1)
        if self._saved != step:
            self.by_command = True
            try:
                self._trainer._save_checkpoint()
            finally:
                self.by_command = False
        return self.folder(step)

    def stop(self, step: int) -> None:
        """One more step is run: verl decides at the begin of a step whether it is the last."""
        self._trainer.total_training_steps = step + 1

    def was_saved(self, step: int) -> None:
        self._saved = step

    def step_ends(self) -> None:
        """The user's own frequency again, once verl has written what was asked for."""
        if self._users_frequency is not None:
            self._frequency, self._users_frequency = self._users_frequency, None

    def folder(self, step: int) -> str:
        root = self._trainer.config.trainer.default_local_dir
        return os.path.join(str(root), f"global_step_{step}")

    @property
    def _engine_is_awake(self) -> bool:
        return hasattr(self._trainer, "checkpoint_manager")

    @property
    def _frequency(self) -> int:
        return int(self._trainer.config.trainer.save_freq)

    @_frequency.setter
    def _frequency(self, steps: int) -> None:
        self._trainer.config.trainer.save_freq = steps
