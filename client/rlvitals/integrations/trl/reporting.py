"""`RLVitalsCallback`: the numbers that any transformers Trainer logs, and pause, stop, checkpoint and rate.

It is also what ``report_to="rlvitals"`` adds; see `rlvitals.reporting`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from transformers import TrainerCallback

import rlvitals
from rlvitals.contract.command import CommandKind
from rlvitals.guard import Guard
from rlvitals.integrations.trl import facts, places, watched
from rlvitals.integrations.trl.callback import VitalsCallback
from rlvitals.integrations.trl.scalar_session import CALLBACK, ScalarSession
from rlvitals.reporter import Reporter


def _passed_on(event: str) -> Callable[..., None]:
    def handle(self: RLVitalsCallback, args: Any, state: Any, control: Any, **loop: Any) -> None:
        if self.vitals is not None:
            getattr(self.vitals, event)(args, state, control, **loop)

    return handle


class RLVitalsCallback(TrainerCallback):
    """``Trainer(callbacks=[RLVitalsCallback()])``; ``arguments`` are those of `rlvitals.init`.

    For a trainer of TRL's `rlvitals.attach` shows far more. Beside it, this callback stands back: one run only.
    The run begins with the training, on rank 0.
    """

    def __init__(self, **arguments: Any) -> None:
        self.vitals: VitalsCallback | None = None
        self._arguments = arguments

    @property
    def reporter(self) -> Reporter | None:
        """None until the training has begun, and beside `rlvitals.attach`."""
        return self.vitals.session.reporter if self.vitals is not None else None

    def on_train_begin(self, args: Any, state: Any, control: Any, **loop: Any) -> None:
        with Guard("beginning a run"):
            if watched.holds(args):
                self.vitals = None
            elif self.vitals is None:
                self.vitals = VitalsCallback(self._session(args, state, loop.get("model")))
        if self.vitals is not None:
            self.vitals.on_train_begin(args, state, control, **loop)

    on_step_begin = _passed_on("on_step_begin")
    on_step_end = _passed_on("on_step_end")
    on_log = _passed_on("on_log")
    on_save = _passed_on("on_save")
    on_evaluate = _passed_on("on_evaluate")
    on_train_end = _passed_on("on_train_end")

    def _session(self, args: Any, state: Any, model: Any) -> ScalarSession:
        framework = (
            "trl" if any(kind.__module__.startswith("trl.") for kind in type(args).__mro__) else "transformers"
        )
        reporter = self._reporter(args, model, framework) if state.is_world_process_zero else Reporter.disabled()
        session = ScalarSession(reporter, reason=CALLBACK, framework=framework)
        places.scalars(session.table, CALLBACK.removeprefix("not measured: "))
        return session

    def _reporter(self, args: Any, model: Any, framework: str) -> Reporter:
        arguments = dict(self._arguments)
        can = facts.loop_capabilities(args)
        told = {
            "name": getattr(args, "run_name", None) or "",
            "framework": framework,
            "model": facts.name_of(model),
            "capabilities": can | {CommandKind.SET_KL_COEF.value: facts.NO_TRAINER},
        }
        known = {**facts.settings(args), "model": facts.name_of(model), "world_size": args.world_size}
        config = known | dict(arguments.pop("config", None) or {})
        return rlvitals.init(**{**told, **arguments}, config=config)
