"""What people ask of verl's V1 trainer: carried out when a step ends, before the weights go to the engine."""

from __future__ import annotations

import weakref
from typing import Any

from rlvitals.contract.command import CommandKind
from rlvitals.integrations.verl import legacy_control
from rlvitals.integrations.verl.session import Session

DISTILLED = "the loss is that of distillation here: the KL coefficient is not what weighs it"
_CHECKPOINTS: weakref.WeakKeyDictionary[Any, Checkpoints] = weakref.WeakKeyDictionary()


def steer(session: Session, trainer: Any) -> None:
    """Registers the commands that this trainer can carry out, and says why it cannot the others."""
    checkpoints = Checkpoints(session, trainer)
    _CHECKPOINTS[trainer] = checkpoints
    legacy_control.steer(session, trainer, checkpoints)
    if session.settings.distills:
        session.cannot(CommandKind.SET_KL_COEF, DISTILLED)


def was_saved(session: Session, trainer: Any) -> None:
    """verl has written a checkpoint, by itself or because it was asked to."""
    checkpoints, step = _CHECKPOINTS.get(trainer), int(trainer.global_steps)
    if checkpoints is not None:
        checkpoints.was_saved(step)
        if not checkpoints.by_command:
            session.vitals.checkpoint_saved(step, checkpoints.folder(step))


class Checkpoints(legacy_control.Checkpoints):
    """V1 writes a checkpoint at the end of a step, and looks at the end of each step whether it was the last."""

    def __init__(self, session: Session, trainer: Any) -> None:
        super().__init__(trainer)
        self._session = weakref.proxy(session)

    def save(self, step: int) -> str:
        """Raises `Refused` where the weights are not finite: such a checkpoint is worth nothing."""
        if self._saved == step:
            return self.folder(step)
        self._session.refuse_poison(step)
        self.by_command = True
        try:
            self._trainer._save_checkpoint()
        finally:
            self.by_command = False
        return self.folder(step)

    def stop(self, step: int) -> None:
        self._trainer.total_training_steps = step
