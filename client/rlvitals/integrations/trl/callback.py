"""The trainer's events: where a step begins and ends, where commands are taken, where a pause holds."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from typing import Any

from transformers import TrainerCallback

from rlvitals.contract.command import Command, CommandKind
from rlvitals.contract.report import EventKind, Phase
from rlvitals.guard import Guard
from rlvitals.integrations.ranks import Ranks
from rlvitals.integrations.steering import Action, Refused, action_of, kind_of, turn_knob
from rlvitals.integrations.trl import facts, steering
from rlvitals.integrations.trl.scalar_session import ScalarSession
from rlvitals.integrations.trl.session import Session
from rlvitals.integrations.trl.steering import Wheel

BEAT_S = 0.5
STATE_KEY = "rlvitals"
LEAST_TIMEOUT_S = 1800.0


class VitalsCallback(TrainerCallback):
    """Added by `attach`. ``wait(seconds)`` is how a pause passes its time between two beats."""

    def __init__(self, session: Session | ScalarSession, *, wait: Callable[[float], object] | None = None) -> None:
        self.session = session
        self._wait = wait or threading.Event().wait
        self._pause_begins = self._steps_begin = False

    # -- events ------------------------------------------------------------------------------------

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        ranks = Ranks()
        with Guard("meeting the ranks"):
            ranks = Ranks.meet(max(float(getattr(args, "ddp_timeout", 0) or 0), LEAST_TIMEOUT_S))
        with Guard("training begins"):
            self.session.train_begins(ranks)
        with Guard("restoring the KL coefficient"):
            self._restore(state)

    def on_step_begin(self, args: Any, state: Any, control: Any, **loop: Any) -> None:
        self._steps_begin = True
        if self._pause_begins:
            self._pause(state, control, loop)
        with Guard("a step begins"):
            optimizer = self._shown(loop, "optimizer")
            rate = float(optimizer.param_groups[0]["lr"]) if optimizer is not None else None
            self.session.step_begins(rate)

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        began = time.perf_counter()
        with Guard("before the optimizer's step"):
            self.session.optimizer_begins()
        self.session.reporter.spent(time.perf_counter() - began)

    def on_optimizer_step(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        began = time.perf_counter()
        with Guard("after the optimizer's step"):
            self.session.optimizer_done()
        self.session.reporter.spent(time.perf_counter() - began)

    def on_step_end(self, args: Any, state: Any, control: Any, **loop: Any) -> None:
        with Guard("a step ends"):
            self.session.step_ends(state.global_step)
        self._obey(state, control, loop)
        if self._pause_begins and not self._steps_begin:  # TRL's PPO loop says only where steps end
            self._pause(state, control, loop)

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        with Guard("the trainer logs"):
            self.session.logged(state.global_step, logs or {})

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        with Guard("a checkpoint is saved"):
            self.session.checkpoint_saved(state.global_step, f"{args.output_dir}/checkpoint-{state.global_step}")

    def on_evaluate(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        with Guard("an evaluation ended"):
            self.session.reporter.current_phase = Phase.UPDATE

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        with Guard("training ends"):
            self.session.train_ends()

    # -- commands ----------------------------------------------------------------------------------

    def _obey(self, state: Any, flags: Any, loop: dict[str, Any]) -> None:
        """Rank 0 takes what has arrived, all ranks do it; only rank 0 says what became of it."""
        control, step = self.session.reporter.control, state.global_step
        taken = control.take(step) if self.session.reporter.enabled else ()
        actions = self.session.ranks.agree([action_of(command) for command in taken])
        wheel = Wheel(
            trainer=self.session.trainer,
            optimizer=self._shown(loop, "optimizer"),
            scheduler=self._shown(loop, "lr_scheduler"),
            flags=flags,
        )
        for place, action in enumerate(actions):
            self._do(action, wheel, taken[place] if place < len(taken) else None, step)
        if actions:
            with Guard("keeping the KL coefficient"):
                self._remember(state)

    def _shown(self, loop: dict[str, Any], name: str) -> Any:
        """Of the loop, else of the trainer: transformers 4.49 shows callbacks none of them."""
        shown = loop.get(name)
        return getattr(self.session.trainer, name, None) if shown is None else shown

    def _do(self, action: Action, wheel: Wheel, command: Command | None, step: int) -> None:
        control, kind = self.session.reporter.control, kind_of(action)
        with Guard(f"command {kind.value}") as watch:
            try:
                if kind is CommandKind.SET_KNOB:
                    before, after = turn_knob(control.knobs, action)
                else:
                    before, after = steering.apply(kind, action[1], wheel)
            except Refused as refusal:
                if command is not None:
                    control.refused(command, str(refusal), step=step)
                return
            self._pause_begins = kind is CommandKind.PAUSE or (
                self._pause_begins and kind not in (CommandKind.RESUME, CommandKind.STOP)
            )
            if command is not None:
                control.applied(command, step=step, before=before, after=after)
        if watch.failed and command is not None:
            control.refused(command, "the integration failed; see the trainer's log", step=step)

    def _pause(self, state: Any, flags: Any, loop: dict[str, Any]) -> None:
        """All ranks wait together and exchange a beat, so that no collective of the training times out."""
        self._pause_begins = False
        with Guard("telling the last step"):
            self.session.settle()
        reporter, step = self.session.reporter, state.global_step
        reporter.phase(Phase.PAUSED)
        while self.session.ranks.agree_to_wait(reporter.control.holding()):
            self._wait(BEAT_S)
        reporter.event(EventKind.NOTE, step, pause_released_by=reporter.control.released_by)
        reporter.phase(Phase.UPDATE)
        self._obey(state, flags, loop)

    # -- the coefficient across a resume -----------------------------------------------------------

    def _remember(self, state: Any) -> None:
        """In the trainer's own state file; under a key that is no callback's class, so that nobody rebuilds us."""
        trainer = self.session.trainer
        value = facts.kl_coef(trainer) if trainer is not None else None
        if value is not None and isinstance(getattr(state, "stateful_callbacks", None), dict):
            kept = {"kl_coef": value, "configured": self.session.configured}
            state.stateful_callbacks[STATE_KEY] = {"args": {}, "attributes": kept}

    def _restore(self, state: Any) -> None:
        """A resumed trainer is back at its configured value; another configured value is the user's new will."""
        trainer, callbacks = self.session.trainer, getattr(state, "stateful_callbacks", None)
        if trainer is None or not isinstance(callbacks, dict):
            return
        kept = callbacks.get(STATE_KEY, {}).get("attributes", {})
        value = kept.get("kl_coef")
        wanted = isinstance(value, (int, float)) and math.isfinite(value) and value > 0
        if wanted and kept.get("configured") == self.session.configured and not facts.no_kl_control(trainer):
            before, after = steering.set_kl_coef(trainer, float(value))
            self.session.reporter.event(
                EventKind.NOTE, state.global_step, restored="kl_coef", before=before, after=after
            )
