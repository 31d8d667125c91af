"""What people ask of an OpenRLHF run, carried out by its controller between two steps, when no rank computes."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rlvitals.contract.command import CommandKind
from rlvitals.integrations.loop import Vitals
from rlvitals.integrations.openrlhf import generator, rank
from rlvitals.integrations.openrlhf.arguments import Arguments
from rlvitals.integrations.steering import Refused

NO_REFERENCE = (
    "the run began with a KL coefficient of 0: it has no reference model, another value would do nothing"
)
ADAPTIVE = "algo.kl.target is set: the adaptive controller would move the coefficient away again at each step"
WRITES_NOTHING = "ckpt.disable_ds is set and ckpt.save_hf is not: OpenRLHF would write nothing"
ANSWER_S = 60.0
"""How long ranks may take to answer between two steps."""
STATE = "rlvitals"
"""Where we keep the coefficient in force in the client states of a checkpoint."""


@dataclass(slots=True)
class Steering:
    """``save_logs`` is the trainer's own method; ``ask`` calls a function of `rank` on every actor rank."""

    trainer: Any
    arguments: Arguments
    save_logs: Callable[..., Any]
    ask: Callable[..., list[Any]]
    client_states: dict[str, Any] = field(default_factory=dict)
    saved_at: int | None = None

    def offer(self, vitals: Vitals) -> None:
        """Says what can be done here, and why the rest cannot."""
        kind = type(self.trainer.kl_ctl).__name__
        if self.arguments.kl_coef <= 0:
            vitals.cannot(CommandKind.SET_KL_COEF, NO_REFERENCE)
        elif hasattr(self.trainer.kl_ctl, "target") or kind.startswith("Adaptive"):
            vitals.cannot(CommandKind.SET_KL_COEF, ADAPTIVE)
        else:
            vitals.on(CommandKind.SET_KL_COEF, self.set_kl_coef, self.kl_coef)
        if self.arguments.get("save_no_state", False) and not self.arguments.get("save_hf", False):
            vitals.cannot(CommandKind.CHECKPOINT, WRITES_NOTHING)
        else:
            vitals.on(CommandKind.CHECKPOINT, self.save)
        reason = generator.cannot_stop(self.trainer)
        if reason:
            vitals.cannot(CommandKind.STOP, reason)
        else:
            vitals.on(CommandKind.STOP, self.stop)
        # bounds are factors of what the user set, which a resumed coefficient is not
        if self.arguments.kl_coef > 0:
            vitals.reporter.control.user_value(CommandKind.SET_KL_COEF, self.arguments.kl_coef)
        vitals.on(CommandKind.SCALE_LR, self.scale_learning_rate, self.learning_rate)

    def kl_coef(self) -> float:
        return float(self.trainer.kl_ctl.value)

    def set_kl_coef(self, value: float) -> None:
        """One object for reward shaping and loss: every rank is handed its value with the next ``fit``."""
        self.trainer.kl_ctl.value = float(value)

    def remember(self, step: int, client_states: dict[str, Any] | None) -> None:
        """Before the trainer's own checkpoint: the coefficient goes into it, which OpenRLHF does not keep."""
        if isinstance(client_states, dict):
            client_states[STATE] = {"kl_coef": self.kl_coef(), "init_coef": self.arguments.kl_coef}
            self.client_states = client_states
        if step % float(self.arguments.get("save_steps", math.inf)) == 0:
            self.saved_at = step

    def restored(self, states: Mapping[str, Any] | None) -> float | None:
        """Takes up the coefficient of a checkpoint, unless the job was started with another one than it was."""
        kept = (states or {}).get(STATE) or {}
        value = kept.get("kl_coef")
        if value is None or kept.get("init_coef") != self.arguments.kl_coef or value == self.kl_coef():
            return None
        if not math.isfinite(value) or value <= 0:
            return None
        self.set_kl_coef(value)
        return float(value)

    def save(self, step: int) -> str:
        """By the trainer's own method, with its schedule of saving and logging set aside for this call."""
        if self.saved_at != step:
            before = [
                (name, self.arguments.put(name, value))
                for name, value in (("save_steps", 1), ("logging_steps", step + 1))
            ]
            try:
                self.save_logs(step, {}, self.client_states)
            finally:
                for name, value in before:
                    self.arguments.put(name, value)
            self.saved_at = step
        return self.folder(step)

    def folder(self, step: int) -> str:
        return os.path.join(str(self.arguments.get("save_path", "")), "_actor", f"global_step{step}")

    def stop(self, step: int) -> None:
        generator.stop(self.trainer, step)

    def learning_rate(self) -> float:
        return float(self.ask(rank.learning_rate)[0])

    def scale_learning_rate(self, factor: float) -> None:
        """On all ranks or on none. Raises `Refused` where a rank did not do it."""
        rates = {round(after, 18) for _, after in self.ask(rank.scale, factor)}
        if len(rates) > 1:
            raise Refused(f"the ranks now have different learning rates: {sorted(rates)}")
