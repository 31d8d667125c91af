"""verl's V0 trainers (`RayPPOTrainer`, and what is derived from it): tapped where they log a step.

``Tracking.log(self, data, step, backend=None)`` has been the same in all releases, every trainer ends a step with
it, and the frame that called it holds the trainer and its batch. Both are looked at, never kept.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from types import FrameType, ModuleType
from typing import Any

from rlvitals.contract.report import Phase
from rlvitals.guard import Guard, attempt
from rlvitals.integrations.hooks import HookTable, wrap
from rlvitals.integrations.verl import agent_r1, legacy_control
from rlvitals.integrations.verl.places import hooks
from rlvitals.integrations.verl.scalars import is_step
from rlvitals.integrations.verl.session import Session, session_of

FRAMES_MAX = 8
"""A caller is at most so many frames up, wrappers of others among them."""
LOG, BATCH, BEGINS, SAVES = "scalars", "batch", "begins", "checkpoints"
_NO_BATCH = "the frame that logs a step holds no batch (a DataProto): another trainer than verl's own"

_STEERED: weakref.WeakKeyDictionary[Any, legacy_control.Checkpoints] = weakref.WeakKeyDictionary()
"""V0 trainers whose commands are registered."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who logs: a trainer of verl's, and its batch (a DataProto) where it still has it."""

    trainer: Any
    batch: Any = None

    @property
    def shape(self) -> str:
        return "V1" if ".v1." in type(self.trainer).__module__ else "V0"


def patch_tracking(module: ModuleType) -> None:
    """Wraps ``verl.utils.tracking.Tracking``: the end of a step, and the begin of a run."""
    tracking, table = getattr(module, "Tracking", None), hooks()
    patched = tracking is not None and wrap(tracking, "log", after=_logged, table=table, hook=LOG)
    why = "" if patched else "verl.utils.tracking has no Tracking.log"
    gives = "steps, trainer metrics, and in trainers before V1 the batch and all control"
    table.add(LOG, "verl.utils.tracking.Tracking.log", gives, patched=patched, why=why)
    began = patched and wrap(tracking, "__init__", after=_began, table=table, hook=BEGINS)
    gives = "that a run has begun, before its first step has ended"
    table.add(BEGINS, "verl.utils.tracking.Tracking.__init__", gives, patched=began, why=why, optional=True)


def find_caller(frame: FrameType | None) -> Caller | None:
    """The first frame upwards whose ``self`` is a trainer with workers; None where there is none."""
    for _ in range(FRAMES_MAX):
        if frame is None:
            return None
        trainer = frame.f_locals.get("self")
        if hasattr(trainer, "config") and hasattr(trainer, "global_steps") and _has_workers(trainer):
            batch = frame.f_locals.get("batch")
            return Caller(trainer, batch if _is_batch(batch) else None)
        frame = frame.f_back
    return None


def columns(trainer: Any, batch: Any) -> dict[str, Any]:
    """A DataProto's columns by verl's own names, with the mask of this trainer's loss as ``response_mask``.

    Nothing is copied. Of rows that are steps of one trajectory each has the trajectory's score.
    """
    found: dict[str, Any] = dict(batch.batch.items())
    for name, value in batch.non_tensor_batch.items():
        found.setdefault(name, value)
    mask = _loss_mask(trainer, found)
    found |= {"response_mask": mask, "written_mask": None}
    with Guard("which tokens the policy wrote"):
        found["written_mask"] = agent_r1.written(found, mask)
    with Guard("scores of trajectories"):
        found |= agent_r1.trajectory_scores(found)
    # the mask that counts was chosen above
    for name in ("action_mask", "loss_mask"):
        found.pop(name, None)
    return found


def _loss_mask(trainer: Any, found: Mapping[str, Any]) -> Any:
    """(B, R) what this trainer's loss counts, padding rows too."""
    width = found["responses"].shape[1]
    if agent_r1.is_legacy(trainer) and "action_mask" in found:
        return found["action_mask"]
    if "loss_mask" in found and _is_multi_turn(trainer):
        # up to 0.4 the response mask counts the tools' tokens, the loss of several turns has a mask of its own
        return found["loss_mask"][:, -width:]
    return found["response_mask"] if "response_mask" in found else found["attention_mask"][:, -width:]


def _is_multi_turn(trainer: Any) -> bool:
    return bool(attempt(lambda: trainer.config.actor_rollout_ref.rollout.multi_turn.enable))


def _has_workers(trainer: Any) -> bool:
    return any(hasattr(trainer, name) for name in ("actor_rollout_wg", "actor_wg"))


def _is_batch(batch: Any) -> bool:
    """A DataProto, told by what is read of it: a V1 trainer's batch is a list of keys."""
    tensors = getattr(batch, "batch", None)
    # a TensorDict has no truth value
    return tensors is not None and hasattr(batch, "non_tensor_batch") and "responses" in tensors.keys()  # noqa: SIM118


def _began(_: object, *__: object, **___: object) -> None:
    caller = find_caller(sys._getframe(1))
    if caller is not None and caller.shape == "V0":
        _session(caller)


def _logged(_: object, tracking: object, data: Any, step: Any, *__: object, **___: object) -> None:
    caller = find_caller(sys._getframe(1))
    if caller is None or not isinstance(data, Mapping):
        return
    session = _session(caller)
    if caller.shape != "V0" or not is_step(data):
        session.logged(int(step), data)
        return
    with Guard("reading verl's batch"):
        _tell_batch(session, caller, int(step))
    with Guard("the frequency of checkpoints"):
        _STEERED[caller.trainer].step_ends()
    if session.reporter.current_phase is Phase.STARTING:
        session.reporter.current_phase = Phase.UPDATE
    # holds here as long as a pause does: no worker is called, no collective is under way
    session.logged(int(step), data)
    if legacy_control.is_last(caller.trainer):
        session.close()


def _session(caller: Caller) -> Session:
    session = session_of(caller.trainer, shape=caller.shape)
    if caller.shape == "V0" and caller.trainer not in _STEERED:
        _STEERED[caller.trainer] = legacy_control.steer(session, caller.trainer)
        _enter(session.hooks, type(caller.trainer))
    return session


def _enter(table: HookTable, trainer: type) -> None:
    """What there is to see of a V0 trainer, known once there is one."""
    gives = "everything that is measured of completions, log-probs, rewards and advantages"
    table.add(BATCH, f"batch in the frame of {trainer.__name__}.fit", gives, patched=True)
    name = "_save_checkpoint"
    patched = hasattr(getattr(trainer, name, None), "__wrapped__") or wrap(
        trainer, name, after=_saved, table=table, hook=SAVES
    )
    why = "" if patched else f"{trainer.__name__} has no {name}"
    gives = "checkpoints that verl writes by itself"
    table.add(SAVES, f"{trainer.__name__}.{name}", gives, patched=patched, why=why, optional=True)


def _saved(_: object, trainer: Any, *__: object, **___: object) -> None:
    checkpoints = _STEERED.get(trainer)
    if checkpoints is not None:
        step = int(trainer.global_steps)
        checkpoints.was_saved(step)
        hooks().saw(SAVES)
        if not checkpoints.by_command:
            session_of(trainer).vitals.checkpoint_saved(step, checkpoints.folder(step))


def _tell_batch(session: Session, caller: Caller, step: int) -> None:
    if caller.batch is None:
        session.hooks.failed(BATCH, _NO_BATCH)
        return
    try:
        session.batch(columns(caller.trainer, caller.batch), step=step)
    except Exception as error:
        session.hooks.failed(BATCH, error)
        raise
