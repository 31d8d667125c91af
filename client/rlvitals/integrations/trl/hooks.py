"""The wraps on a trainer instance: the original first, then ours inside the guard; the result is handed on."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from rlvitals.guard import Guard
from rlvitals.integrations.trl.session import Session
from rlvitals.probes.phases import StepPhase

LOGPROB_METHODS = ("_get_per_token_logps_and_entropies", "_get_per_token_logps")


def install(trainer: Any, session: Session) -> None:
    """Wraps what this trainer has; what it has not is told as missing metrics, not as an error."""
    for name in LOGPROB_METHODS:
        _wrap(trainer, name, session, before=session.logprobs_begin, after=session.logprobs_computed)
    _wrap(trainer, "compute_loss", session, after=session.loss_computed)
    _wrap(trainer, "_calculate_rewards", session, before=session.rewards_begin, after=session.rewards_calculated)
    _wrap(
        trainer,
        "_generate_and_score_completions",
        session,
        before=session.generation_begins,
        after=session.generation_done,
    )
    _wrap(
        trainer.accelerator,
        "clip_grad_norm_",
        session,
        before=session.clipping_begins,
        after=session.gradient_measured,
    )
    for name, phase in (("evaluate", StepPhase.EVAL), ("_save_checkpoint", StepPhase.CHECKPOINT)):
        enter, leave = partial(session.clock.enter, phase), partial(_leave, session, phase)
        _wrap(trainer, name, session, before=enter, after=leave)


def _leave(session: Session, phase: StepPhase, *_: Any, **__: Any) -> None:
    session.clock.leave(phase)


def _wrap(
    owner: Any,
    name: str,
    session: Session,
    *,
    after: Callable[..., None],
    before: Callable[[], None] | None = None,
) -> None:
    original = getattr(owner, name, None)
    if original is None:
        return

    @functools.wraps(original)
    def hooked(*args: Any, **kwargs: Any) -> Any:
        if before is not None:
            began = time.perf_counter()
            with Guard(f"before {name}"):
                before()
            session.reporter.spent(time.perf_counter() - began)
        result = original(*args, **kwargs)
        began = time.perf_counter()
        with Guard(f"after {name}"):
            after(result, *args, **kwargs)
        session.reporter.spent(time.perf_counter() - began)
        return result

    setattr(owner, name, hooked)
