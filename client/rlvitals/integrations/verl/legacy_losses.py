"""On the workers of verl 0.4 to 0.7, and of Agent-R1: the policy loss, seen where an actor asks for it by name.

Their actors call ``get_policy_loss_fn(name)`` (0.4 and 0.5 also ``compute_policy_loss``) of ``core_algos``. It is
a part of the loss only, which says nothing of the whole. Since 0.8 the losses of engine workers are watched
(`workers`).
"""

from __future__ import annotations

import functools
import inspect
import sys
import time
from collections.abc import Callable
from types import FrameType, ModuleType
from typing import Any

from rlvitals.guard import Guard
from rlvitals.integrations.verl.places import hooks
from rlvitals.integrations.verl.settings import SEQUENCES, verl_version, version_numbers
from rlvitals.integrations.verl.workers import LEDGER, LOSS

LOOKUP, LOSS_OF_OLD = "get_policy_loss_fn", "compute_policy_loss"
WATCHED_ELSEWHERE = "verl.workers.utils.losses"
ENGINES_SINCE = (0, 8)
CLIP = 0.2


def patch_core(module: ModuleType) -> None:
    """Wraps what an actor takes its policy loss from; nothing from verl 0.8 on."""
    if module.__name__.startswith("verl.") and version_numbers(verl_version()) >= ENGINES_SINCE:
        return
    lookup, patched = getattr(module, LOOKUP, None), False
    if lookup is not None:
        setattr(module, LOOKUP, _watched_lookup(lookup))
        patched = True
    if version_numbers(verl_version()) < (0, 6) and hasattr(module, LOSS_OF_OLD):
        setattr(module, LOSS_OF_OLD, _watched(getattr(module, LOSS_OF_OLD), "vanilla"))
        patched = True
    why = "" if patched else f"{module.__name__} has no {LOOKUP}"
    gives = "ratios of new to old policy, with token ids"
    hooks().add(LOSS, f"{module.__name__}.{LOOKUP}", gives, patched=patched, why=why)


def _watched_lookup(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def lookup(name: Any, *arguments: Any, **options: Any) -> Any:
        loss = original(name, *arguments, **options)
        if sys._getframe(1).f_globals.get("__name__") == WATCHED_ELSEWHERE:
            return loss
        return _watched(loss, str(name))

    return lookup


def _watched(loss: Callable[..., Any], mode: str) -> Callable[..., Any]:
    @functools.wraps(loss)
    def watched(*arguments: Any, **options: Any) -> Any:
        result = loss(*arguments, **options)
        began = time.perf_counter()
        with Guard("watching the policy loss"):
            _measure(loss, mode, arguments, options, sys._getframe(1))
        LEDGER.spent(time.perf_counter() - began)
        return result

    return watched


def _measure(
    loss: Callable[..., Any], mode: str, arguments: tuple[Any, ...], options: dict[str, Any], caller: FrameType
) -> None:
    from rlvitals.integrations.verl.loss_pieces import pieces

    told = inspect.signature(loss).bind(*arguments, **options).arguments
    logp = told["log_prob"].detach()
    data = {"response_mask": told["response_mask"], "old_log_probs": told["old_log_prob"]}
    data["advantages"] = told["advantages"].expand_as(logp)
    ids = _ids(caller, logp)
    if ids is not None:
        data["responses"] = ids
    low, high = _clips(told)
    hooks().saw(LOSS)
    for what, launch in pieces(None, data, logp, low, high, by_sequence=mode in SEQUENCES):
        with Guard(f"measuring {what}"):
            LEDGER.add(launch())


def _ids(caller: FrameType, logp: Any) -> Any:
    """(B, T) the completions' ids from the actor's own micro-batch; None where it has another name."""
    for name in ("model_inputs", "data"):
        batch = caller.f_locals.get(name)
        found = batch["responses"] if batch is not None and "responses" in batch.keys() else None  # noqa: SIM118
        if found is not None and found.shape == logp.shape:
            return found
    return None


def _clips(told: dict[str, Any]) -> tuple[float, float]:
    """The bounds of this call: of its own arguments up to 0.5, of the actor's configuration since."""
    config = told.get("config")
    if config is not None:
        plain = _number(getattr(config, "clip_ratio", None), CLIP)
        low, high = (getattr(config, f"clip_ratio_{side}", None) for side in ("low", "high"))
        return _number(low, plain), _number(high, plain)
    plain = _number(told.get("cliprange"), CLIP)
    return _number(told.get("cliprange_low"), plain), _number(told.get("cliprange_high"), plain)


def _number(value: Any, otherwise: float) -> float:
    return otherwise if value is None else float(value)
