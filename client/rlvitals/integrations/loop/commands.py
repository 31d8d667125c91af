"""What people and policies ask of the loop: taken where a step ends, by all ranks together, and answered."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlvitals.contract.command import Command, CommandKind
from rlvitals.contract.report import EventKind, Phase
from rlvitals.guard import Guard, outcome
from rlvitals.integrations.loop.facts import Coefficient
from rlvitals.integrations.steering import (
    KINDS,
    LEAST_COEFFICIENT,
    Action,
    Refused,
    action_of,
    kind_of,
    scale_learning_rate,
    turn_knob,
)
from rlvitals.knobs import NO_KNOB
from rlvitals.reporter import Reporter

if TYPE_CHECKING:
    from rlvitals.integrations.ranks import Ranks

BEAT_S = 0.5
HANDLED = (CommandKind.SET_KL_COEF, CommandKind.CHECKPOINT, CommandKind.STOP, CommandKind.SCALE_LR)
"""What a handler may be given for; a pause is ours alone."""
COEFFICIENT_IS_ZERO = "the KL coefficient is 0: the loop computes no KL that another value could scale"
NO_OPTIMIZER = "rlvitals.run was given no optimizer, and vitals.on('scale_lr', …) was not called"


@dataclass(frozen=True, slots=True)
class Later:
    """What a checkpoint's handler returns where the trainer itself writes it, at the end of another ``step``."""

    step: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Handler:
    """``act`` takes the value (set_kl_coef, scale_lr) or the step (checkpoint, stop); ``get`` reads the value."""

    act: Callable[[Any], object]
    get: Callable[[], float] | None = None


class Commands:
    """One run's, on every rank. ``wait(seconds)`` is how a pause passes its time between two beats."""

    def __init__(
        self,
        reporter: Reporter,
        *,
        ranks: Ranks | None,
        coefficient: Coefficient,
        optimizer: Any = None,
        scheduler: Any = None,
        wait: Callable[[float], object] | None = None,
    ) -> None:
        self.should_stop = False
        self.wait = wait or threading.Event().wait
        self._reporter, self._ranks, self._coefficient = reporter, ranks, coefficient
        self._optimizer, self._scheduler = optimizer, scheduler
        self._handlers: dict[CommandKind, Handler] = {}
        self._reasons: dict[CommandKind, str] = {}
        self._pausing = False
        self._describe()

    def on(self, kind: CommandKind, act: Callable[[Any], object], get: Callable[[], float] | None = None) -> None:
        """Registers what carries a command out. Raises ValueError for one that needs nobody."""
        if kind not in HANDLED:
            raise ValueError(f"{kind.value}: expected one of {', '.join(k.value for k in HANDLED)}")
        self._handlers[kind] = Handler(act=act, get=get)
        self._reasons.pop(kind, None)
        if kind is CommandKind.SET_KL_COEF and get is not None:
            self._coefficient.get = get
            value = self._coefficient.now()
            if value:
                self._reporter.control.user_value(kind, value)
        self._describe()

    def cannot(self, kind: CommandKind, reason: str) -> None:
        """Says why a command can't be carried out here; a handler given later takes it back."""
        self._reasons[kind] = reason
        self._handlers.pop(kind, None)
        self._describe()

    def capabilities(self) -> Mapping[str, str]:
        """Command kind → "" where it can be done, else the reason why not."""
        found = {kind.value: "" for kind in CommandKind}
        for kind in (CommandKind.SET_KL_COEF, CommandKind.CHECKPOINT):
            if kind not in self._handlers:
                found[kind.value] = f"the loop has no handler: vitals.on({kind.value!r}, …) was not called"
        if CommandKind.SCALE_LR not in self._handlers and self._optimizer is None:
            found[CommandKind.SCALE_LR.value] = NO_OPTIMIZER
        if not self._reporter.control.knobs.names:
            found[CommandKind.SET_KNOB.value] = NO_KNOB
        found |= {kind.value: reason for kind, reason in self._reasons.items()}
        obeys = self._reporter.part.obeys
        return found if obeys is None else {kind.value: found[kind.value] for kind in KINDS if kind in obeys}

    def obey(self, step: int) -> None:
        """Collective: carries out what has arrived, and holds as long as a pause does."""
        self._take(step)
        while self._pausing:
            self._hold(step)
            self._take(step)

    # -- inside ------------------------------------------------------------------------------------

    def _describe(self) -> None:
        self._reporter.describe(capabilities=self.capabilities())

    def _take(self, step: int) -> None:
        """Rank 0 takes what has arrived, all ranks do it; only rank 0 says what became of it."""
        taken = self._reporter.control.take(step) if self._reporter.enabled else ()
        actions = [action_of(command) for command in taken]
        if self._ranks is not None:
            actions = self._ranks.agree(actions)
        for place, action in enumerate(actions):
            self._do(action, taken[place] if place < len(taken) else None, step)

    def _do(self, action: Action, command: Command | None, step: int) -> None:
        control, kind = self._reporter.control, kind_of(action)
        with Guard(f"command {kind.value}") as watch:
            try:
                before, after = self._apply(action, step)
            except Refused as refusal:
                if command is not None:
                    control.refused(command, str(refusal), step=step)
                return
            if command is not None:
                control.applied(command, step=step, before=before, after=after)
        if watch.failed and command is not None:
            control.refused(command, "the integration failed; see the loop's log", step=step)

    def _apply(self, action: Action, step: int) -> tuple[float | None, float | None]:
        """Value before and after, read back from the loop where that can be. Raises `Refused`."""
        kind, argument = kind_of(action), action[1]
        if kind is CommandKind.SET_KNOB:
            return turn_knob(self._reporter.control.knobs, action)
        if kind is CommandKind.SET_KL_COEF:
            return self._set_kl_coef(argument)
        if kind is CommandKind.SCALE_LR:
            return self._scale_learning_rate(argument)
        if kind is CommandKind.CHECKPOINT:
            self._save(step)
        if kind is CommandKind.STOP:
            self._stop(step)
        self._pausing = kind is CommandKind.PAUSE or (self._pausing and kind not in _RELEASES)
        return None, None

    def _set_kl_coef(self, value: float) -> tuple[float | None, float | None]:
        """Never to 0 and never from 0. Takes effect when the loop next reads it."""
        handler = self._handler(CommandKind.SET_KL_COEF)
        before = self._coefficient.now()
        if before == 0:
            raise Refused(COEFFICIENT_IS_ZERO)
        wanted = max(value, LEAST_COEFFICIENT)
        _call(handler.act, wanted)
        self._coefficient.told(wanted)
        return before, self._coefficient.now()

    def _scale_learning_rate(self, factor: float) -> tuple[float | None, float | None]:
        handler = self._handlers.get(CommandKind.SCALE_LR)
        if handler is None:
            return scale_learning_rate(self._optimizer, self._scheduler, factor)
        before = _read(handler.get)
        _call(handler.act, factor)
        return before, _read(handler.get)

    def _save(self, step: int) -> None:
        folder = _call(self._handler(CommandKind.CHECKPOINT).act, step)
        if isinstance(folder, Later):
            self._reporter.event(EventKind.NOTE, step, checkpoint_comes_with_step=folder.step)
            return
        self._reporter.event(EventKind.CHECKPOINT, step, folder="" if folder is None else str(folder))

    def _stop(self, step: int) -> None:
        """Stops whatever becomes of the checkpoint; what failed is told all the same."""
        self.should_stop = True
        if CommandKind.CHECKPOINT in self._handlers:
            try:
                self._save(step)
            except Refused as refusal:
                self._reporter.event(EventKind.NOTE, step, stopped_without_checkpoint=str(refusal))
        if CommandKind.STOP in self._handlers:
            _call(self._handlers[CommandKind.STOP].act, step)

    def _handler(self, kind: CommandKind) -> Handler:
        if kind not in self._handlers:
            raise Refused(self.capabilities()[kind.value])
        return self._handlers[kind]

    def _hold(self, step: int) -> None:
        """All ranks wait together and exchange a beat, so that no collective of the training times out."""
        self._pausing = False
        control, before = self._reporter.control, self._reporter.current_phase
        self._reporter.phase(Phase.PAUSED)
        while self._agree_to_wait(control.holding()):
            self.wait(BEAT_S)
        self._reporter.event(EventKind.NOTE, step, pause_released_by=control.released_by)
        self._reporter.phase(before if before is not Phase.PAUSED else Phase.UPDATE)

    def _agree_to_wait(self, wait: bool) -> bool:
        return wait if self._ranks is None else self._ranks.agree_to_wait(wait)


_RELEASES = (CommandKind.RESUME, CommandKind.STOP)


def _call(act: Callable[[Any], object], argument: object) -> object:
    """The loop's own code: what it raises is the reason of a refusal. Raises `Refused`."""
    result, error = outcome(act, argument)
    if error:
        raise Refused(f"the loop's handler failed: {error}")
    return result


def _read(get: Callable[[], float] | None) -> float | None:
    if get is None:
        return None
    value, error = outcome(get)
    return None if error or value is None else float(value)
