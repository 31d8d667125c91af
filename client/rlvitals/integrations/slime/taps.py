"""Hold of slime's own functions on a training rank: the policy loss with its log-probs, and the optimizer step.

They are looked up in their modules at each call, so what replaces them there is seen by slime's loop. Originals go
first, ours in the guard; `release` puts the originals back.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from rlvitals.guard import attempt
from rlvitals.integrations.hooks import HookTable, wrap
from rlvitals.integrations.slime import support

LOSS_MODULE = "slime.backends.megatron_utils.loss"
MODEL_MODULE = "slime.backends.megatron_utils.model"


class Watched(Protocol):
    """What the taps tell."""

    open_step: int | None

    def begin(self, rollout_id: int, step_id: int, optimizer: Any) -> None: ...

    def end(self, losses: Any = None, norm: Any = None) -> None: ...

    def measure(self, batch: Any, logp: Any, entropy: Any, loss: Any) -> None: ...


Opener = Callable[[Any, str], "Watched | None"]


class Taps:
    """One process's. ``opener`` gives whom to tell, for a role; it is collective at its first call."""

    def __init__(self, table: HookTable, opener: Opener) -> None:
        self.table = table
        self._opener = opener
        self._watched: Watched | None = None
        self._originals: list[tuple[Any, str, Any]] = []
        self._batch: Any = None
        self._last: Any = None
        self._seen: Mapping[str, Any] = {}
        loss, model = attempt(importlib.import_module, LOSS_MODULE), attempt(importlib.import_module, MODEL_MODULE)
        self.sees_loss = self._wrap(loss, "policy_loss_function", self._loss_ends, support.LOSS, self._loss_begins)
        self._wrap(loss, "get_log_probs_and_entropy", self._logprobs, support.LOGPROBS)
        self._wrap(model, "train_one_step", self._step_ends, support.STEP, self._step_begins)

    def clear(self) -> None:
        self._batch, self._last, self._seen = None, None, {}

    def release(self) -> None:
        for owner, name, original in reversed(self._originals):
            setattr(owner, name, original)
        self._originals.clear()
        self.clear()

    def _wrap(
        self,
        owner: Any,
        name: str,
        after: Callable[..., None],
        hook: str,
        before: Callable[..., None] | None = None,
    ) -> bool:
        original = getattr(owner, name, None)
        if original is None:
            support.enter(self.table, hook, patched=False, why=f"there is no {name} in this slime")
            return False
        self._originals.append((owner, name, original))
        support.enter(self.table, hook, patched=True)
        return wrap(owner, name, after=after, before=before, table=self.table, hook=hook)

    # -- the loss of a micro-batch -----------------------------------------------------------------

    def _loss_begins(self, args: Any, batch: Any, *_: Any, **__: Any) -> None:
        # with --recompute-loss-function the same micro-batch comes again in the backward pass
        again = bool(getattr(args, "recompute_loss_function", False)) and batch is self._last
        self._batch, self._seen = None if again else batch, {}

    def _logprobs(self, result: Any, *_: Any, **__: Any) -> None:
        if self._batch is not None:
            self._seen = result[1] if isinstance(result, tuple) else result
            self.table.saw(support.LOGPROBS)

    def _loss_ends(self, result: Any, args: Any, batch: Any, *_: Any, **__: Any) -> None:
        taken, self._batch = self._batch, None
        seen, self._seen = self._seen, {}
        if taken is None or self._watched is None:
            return
        self._last = batch if getattr(args, "recompute_loss_function", False) else None
        self._watched.measure(batch, seen.get("log_probs"), seen.get("entropy"), result[0])
        self.table.saw(support.LOSS)

    # -- an optimizer step -------------------------------------------------------------------------

    def _step_begins(self, args: Any, rollout_id: int, step_id: int, *rest: Any, **told: Any) -> None:
        model, optimizer = told.get("model", rest[1] if len(rest) > 1 else None), told.get("optimizer")
        optimizer = rest[2] if optimizer is None and len(rest) > 2 else optimizer
        self._watched = self._opener(args, role_of(model))
        if self._watched is not None:
            self._watched.end()
            self._watched.begin(rollout_id, step_id, optimizer)

    def _step_ends(self, result: Any, *_: Any, **__: Any) -> None:
        if self._watched is not None:
            losses, norm = result
            self._watched.end(losses, norm)
            self.table.saw(support.STEP)

    def follow(self, watched: Watched | None) -> None:
        """Whom to tell from now on."""
        self._watched = watched


def role_of(model: Any) -> str:
    """actor or critic, as slime marks its models."""
    return str(getattr(model[0], "role", None) or "actor") if model else "actor"
