"""Around the optimizer's own step, by its hooks: the learning rate in force, and what the step did to weights."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from rlvitals.guard import Guard
from rlvitals.probes import updates
from rlvitals.probes.reduction import Reduction


class WeightWatch:
    """``found`` takes what was launched and the seconds that it took; ``first`` says whether this rank looks.

    Copies of a few weights, ours alone, live from before a step until after it.
    """

    def __init__(self, model: Any, optimizer: Any, found: Callable[[Reduction | None, float], None]) -> None:
        self.learning_rate: float | None = None
        self._model, self._found = model, found
        self._before: updates.Sample | None = None
        self._steps = 0
        # accelerate's wrapper has the parameter groups, and torch's own optimizer the hooks
        self._optimizer = getattr(optimizer, "optimizer", optimizer)
        self._handles: list[Any] = []

    def install(self, *, first: bool) -> None:
        if not hasattr(self._optimizer, "register_step_post_hook"):
            return
        self._handles.append(self._optimizer.register_step_pre_hook(self._begins))
        if first and self._model is not None:
            self._handles.append(self._optimizer.register_step_post_hook(self._done))

    def remove(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def rate(self) -> float | None:
        """The learning rate of this step, else the one in force now."""
        taken, self.learning_rate = self.learning_rate, None
        groups = getattr(self._optimizer, "param_groups", None)
        return taken if taken is not None or not groups else float(groups[0]["lr"])

    def _begins(self, *_: Any) -> None:
        began = time.perf_counter()
        with Guard("before the optimizer's step"):
            self.learning_rate = float(self._optimizer.param_groups[0]["lr"])
            if len(self._handles) > 1:
                self._before = updates.sample_weights(self._model.named_parameters(), seed=self._steps)
                self._steps += 1
        self._found(None, time.perf_counter() - began)

    def _done(self, *_: Any) -> None:
        began, found = time.perf_counter(), None
        before, self._before = self._before, None
        with Guard("after the optimizer's step"):
            if before is not None:
                found = updates.measure_update(before, self._model.named_parameters())
        self._found(found, time.perf_counter() - began)
