"""TRL: ``rlvitals.attach(trainer)`` for GRPO and the trainers built like it.

Methods are wrapped on the trainer *instance*; the original always runs first, its result is handed on untouched.
Whatever goes wrong on our side ends in the guard, so training is bit for bit the same with us and without.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import rlvitals
from rlvitals.contract.command import CommandKind
from rlvitals.integrations.trl import facts, places, watched
from rlvitals.reporter import Reporter

if TYPE_CHECKING:
    from rlvitals.integrations.trl.reporting import RLVitalsCallback as RLVitalsCallback
    from rlvitals.integrations.trl.scalar_session import ScalarSession
    from rlvitals.integrations.trl.session import Session


def attach(
    trainer: Any,
    *,
    texts: bool = True,
    reward_range: tuple[float, float] | None = None,
    kl_gradient_every: int = 0,
    token_ranges: Mapping[str, Any] | None = None,
    **arguments: Any,
) -> Reporter:
    """Hooks ``trainer`` and returns its `Reporter`; call it once, before ``trainer.train()``, on every rank.

    ``texts=False`` sends counts only, never a completion or a prompt. ``reward_range`` are the least and the
    greatest reward that an answer can get, by which groups count as all wrong or all right; without it the least
    and the greatest that the run has shown stand for them. ``kl_gradient_every=50`` measures the KL term's
    gradient by the parameters on each 50th step, by a pass of its own; 0 never does.
    ``token_ranges={"byte_ids": [(3, 258)]}`` overrides what the vocabulary says, for people who know better.

    The other arguments are those of `rlvitals.init`. With several ranks only rank 0 reports; the others get a
    reporter that does nothing.
    """
    # here and not above: for its facts alone nobody needs transformers
    from rlvitals.integrations.trl.callback import VitalsCallback

    attached = next((c for c in trainer.callback_handler.callbacks if isinstance(c, VitalsCallback)), None)
    if attached is not None:
        return attached.session.reporter
    reporter = _reporter(trainer, arguments)
    told = {"texts": texts, "reward_range": reward_range, "kl_gradient_every": kl_gradient_every}
    session = _session(trainer, reporter, {**told, "token_ranges": token_ranges})
    watched.add(trainer)
    trainer.add_callback(VitalsCallback(session))
    return reporter


def _session(trainer: Any, reporter: Reporter, told: Mapping[str, Any]) -> Session | ScalarSession:
    """With wraps where the trainer's methods show tensors, else by its callbacks alone."""
    from rlvitals.integrations.trl import hooks
    from rlvitals.integrations.trl.scalar_session import ScalarSession
    from rlvitals.integrations.trl.session import Session

    if places.shows_tensors(trainer):
        session = Session(trainer, reporter, **told)
        hooks.install(trainer, session)
        return session
    kind = type(trainer).__name__
    why = places.ASYNC if kind.startswith("AsyncGRPO") else f"{kind} shows what it logs, not its tensors"
    scalar = ScalarSession(reporter, trainer=trainer, reason=f"not measured: {why}")
    places.scalars(scalar.table, why, kind=kind)
    return scalar


def _reporter(trainer: Any, arguments: dict[str, Any]) -> Reporter:
    if not trainer.accelerator.is_main_process:
        return Reporter.disabled()
    told = {
        "name": getattr(trainer.args, "run_name", None) or "",
        "framework": "trl",
        "model": facts.model_name(trainer),
        "capabilities": facts.capabilities(trainer),
    }
    config = facts.config(trainer) | dict(arguments.pop("config", None) or {})
    reporter = rlvitals.init(**{**told, **arguments}, config=config)
    coefficient = facts.kl_coef(trainer)
    if coefficient:
        reporter.control.user_value(CommandKind.SET_KL_COEF, coefficient)
    return reporter


def __getattr__(name: str) -> object:
    if name != "RLVitalsCallback":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from rlvitals.integrations.trl.reporting import RLVitalsCallback

    return RLVitalsCallback
