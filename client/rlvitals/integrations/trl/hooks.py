"""The wraps on a trainer instance: the original first, then ours inside the guard; the result is handed on."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from rlvitals.integrations.hooks import HookTable, wrap
from rlvitals.integrations.trl import facts, places
from rlvitals.integrations.trl.places import Place
from rlvitals.integrations.trl.session import Session
from rlvitals.probes.phases import PhaseClock, StepPhase

Calls = tuple[Callable[..., None], Callable[..., None] | None]
"""After the original and before it."""


def install(trainer: Any, session: Session) -> None:
    """Wraps what this trainer has; what it has not is told in the session's table, with the reason."""
    calls: dict[str, Calls] = {
        places.LOGPROBS: (session.logprobs_computed, session.logprobs_begin),
        places.LOSS: (session.loss_computed, None),
        places.REWARDS: (session.rewards_calculated, session.rewards_begin),
        places.GENERATION: (session.generation_done, session.generation_begins),
        places.CLIP: (session.gradient_measured, session.clipping_begins),
        places.EVALUATE: _timed(session.clock, session.table, places.EVALUATE, StepPhase.EVAL),
        places.SAVE: _timed(session.clock, session.table, places.SAVE, StepPhase.CHECKPOINT),
    }
    for place in places.PLACES:
        _take(trainer, place, calls[place.name], session)
    places.events(session.table)


def _take(trainer: Any, place: Place, calls: Calls, session: Session) -> None:
    owner, (after, before) = place.owner(trainer), calls
    method, why, kind = place.method(owner), "", type(trainer).__name__
    if not method:
        why = places.why_absent(place, kind, session.table.version)
    elif place.name == places.LOGPROBS and facts.hides_logprobs(trainer):
        why = places.LIGER
    # with Liger the method is there, and the reference model's pass goes through it
    patched = bool(method) and wrap(
        owner,
        method,
        after=after,
        before=before,
        spent=session.reporter.spent,
        table=session.table,
        hook=place.name,
    )
    session.table.add(
        place.name,
        place.target(kind, method or place.methods[0]),
        place.gives,
        patched=patched and not why,
        why=why,
        optional=place.optional,
    )


def _timed(clock: PhaseClock, table: HookTable, name: str, phase: StepPhase) -> Calls:
    return partial(_leave, clock, table, name, phase), partial(_enter, clock, phase)


def _enter(clock: PhaseClock, phase: StepPhase, *_: Any, **__: Any) -> None:
    clock.enter(phase)


def _leave(clock: PhaseClock, table: HookTable, name: str, phase: StepPhase, *_: Any, **__: Any) -> None:
    clock.leave(phase)
    table.saw(name)
