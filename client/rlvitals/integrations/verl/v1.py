"""verl's V1 trainer (0.9, the default): the batch in TransferQueue, seen where its metrics are computed.

The driver holds keys only. ``_compute_metrics`` runs once a step before they are cleared; ``on_step_end`` before
the weights go to the rollout engine, where memory is lowest: there commands are carried out.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

from rlvitals.guard import Guard
from rlvitals.integrations.hooks import wrap
from rlvitals.integrations.verl import control
from rlvitals.integrations.verl.fitting import watch_fit
from rlvitals.integrations.verl.places import hooks
from rlvitals.integrations.verl.session import Session, session_of

BATCH, STEP, CONTROL, SAVES = "batch", "step", "control", "checkpoints"
COLUMNS = (
    "uid",
    "prompts",
    "responses",
    "response_mask",
    "rm_scores",
    "old_log_probs",
    "ref_log_prob",
    "rollout_log_probs",
    "advantages",
    "entropy",
)
NEEDED = ("uid", "prompts", "responses", "response_mask", "rm_scores")
_WRAPPED = "_rlvitals_wrapped"
_USED: weakref.WeakKeyDictionary[Any, float] = weakref.WeakKeyDictionary()
"""The KL coefficient with which a trainer's last step was made."""


def patch_trainer(module: ModuleType) -> None:
    """Wraps ``PPOTrainer.fit``; the rest of a mode's own class is wrapped when it is about to be fitted."""
    watch_fit(module, "PPOTrainer", begin=_begin)


def _begin(trainer: Any) -> None:
    kind = type(trainer)
    if not kind.__dict__.get(_WRAPPED, False):
        _wrap_class(kind)
        setattr(kind, _WRAPPED, True)
    session = session_of(trainer, shape=f"V1 {getattr(trainer, 'trainer_mode', '')}".strip())
    # between two steps is before the weights go out, not where the step is logged
    session.obeys = False
    control.steer(session, trainer)
    hooks().tell(session.reporter)


def _wrap_class(kind: type) -> None:
    """Of the trainer's own class: a mode overrides some of these."""
    found: Sequence[tuple[str, str, str, Mapping[str, Any]]] = (
        (
            BATCH,
            "_compute_metrics",
            "all that is measured of completions, log-probs, rewards",
            {"after": _metrics},
        ),
        (STEP, "step", "whether a step was finite before a checkpoint of it is written", {"after": _stepped}),
        (CONTROL, "on_step_end", "commands", {"before": _step_ends, "after": _nothing}),
        (SAVES, "_save_checkpoint", "checkpoints that verl writes by itself", {"after": _saved}),
    )
    for hook, name, gives, calls in found:
        patched = wrap(kind, name, table=hooks(), hook=hook, **calls)
        why = "" if patched else f"{kind.__name__} has no {name} in this version"
        optional = hook in (STEP, SAVES)
        hooks().add(
            hook, f"{kind.__module__}.{kind.__name__}.{name}", gives, patched=patched, why=why, optional=optional
        )


def _nothing(*_: Any, **__: Any) -> None:
    pass


# -- hooks; each inside the guard ----------------------------------------------------------------------


def _stepped(_: Any, trainer: Any, metrics: Mapping[str, Any], *__: Any, **___: Any) -> None:
    session = session_of(trainer)
    session.was_finite(int(trainer.global_steps), metrics)
    # a command may change it before this step is reported
    _USED[trainer] = session.coefficient()
    hooks().saw(STEP)


def _step_ends(trainer: Any, *_: Any, **__: Any) -> None:
    """Holds here as long as a pause does: no worker is called, no collective is under way."""
    hooks().saw(CONTROL)
    session_of(trainer).obey(int(trainer.global_steps))


def _metrics(_: Any, trainer: Any, batch: Any, metrics: Mapping[str, Any], *__: Any, **options: Any) -> None:
    step = int(options.get("global_steps", trainer.global_steps))
    session = session_of(trainer)
    with session.as_it_was(_USED.get(trainer)):
        with Guard("reading verl's batch"):
            _tell_batch(session, batch, step)
        session.step_ends(step, metrics)


def _tell_batch(session: Session, batch: Any, step: int) -> None:
    began = time.perf_counter()
    try:
        found = columns(batch)
        session.reporter.spent(time.perf_counter() - began)
        session.batch(found, step=step)
    except Exception as error:
        session.hooks.failed(BATCH, error)
        raise


def columns(batch: Any) -> dict[str, Any]:
    """A KVBatchMeta's columns, from TransferQueue to this process. Rows that fill a batch up are marked."""
    import transfer_queue

    found = _fetch(transfer_queue.kv_batch_get, batch, COLUMNS)
    found["is_padding"] = [bool(tag.get("is_padding", False)) for tag in batch.tags]
    return found


def _fetch(get: Callable[..., Any], batch: Any, names: Sequence[str]) -> dict[str, Any]:
    """Columns that nobody wrote are left out."""
    data = get(keys=batch.keys, partition_id=batch.partition_id, select_fields=list(names))
    return {name: data[name] for name in names if name in data.keys()}  # noqa: SIM118  a TensorDict iterates over rows


def _saved(_: Any, trainer: Any, *__: Any, **___: Any) -> None:
    hooks().saw(SAVES)
    control.was_saved(session_of(trainer), trainer)
