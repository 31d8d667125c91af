"""On verl's workers: what only they see. New over old log-probs in the loss, gradients and weights at the step.

Each rank keeps what it has measured until the driver asks for it, between two steps (`take`).
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from rlvitals.guard import Guard
from rlvitals.integrations.hooks import wrap
from rlvitals.integrations.verl.places import hooks
from rlvitals.integrations.verl.settings import SEQUENCES

LOSS, OPTIMIZER = "loss", "optimizer"
COLUMN = "told"
KEPT_MAX = 4096
"""Reductions that wait for the driver at most: one that never asks costs no memory."""


@dataclass(slots=True)
class Ledger:
    """What this process has measured since the driver last asked."""

    found: list[Any] = field(default_factory=list)
    seconds: float = 0.0
    steps: int = 0
    before: Any = None

    def add(self, reduction: Any) -> None:
        if len(self.found) < KEPT_MAX:
            self.found.append(reduction)

    def spent(self, seconds: float) -> None:
        self.seconds += seconds


LEDGER = Ledger()


def patch_losses(module: ModuleType) -> None:
    """Wraps ``verl.workers.utils.losses.ppo_loss``, before the workers take its name."""
    patched = wrap(module, "ppo_loss", after=_loss_computed, spent=LEDGER.spent, table=hooks(), hook=LOSS)
    gives = "ratios of new to old policy, with token ids"
    hooks().add(
        LOSS, "verl.workers.utils.losses.ppo_loss", gives, patched=patched, why="" if patched else _gone(module)
    )


def patch_engine(module: ModuleType) -> None:
    """Wraps ``FSDPEngine.optimizer_step``: gradients before the clipping, weights before and after the step."""
    engine = getattr(module, "FSDPEngine", None)
    patched = engine is not None and wrap(
        engine,
        "optimizer_step",
        before=_step_begins,
        after=_step_done,
        spent=LEDGER.spent,
        table=hooks(),
        hook=OPTIMIZER,
    )
    gives = "gradients by parameter, and how far an optimizer step moves the weights"
    target = "verl.workers.engine.fsdp.transformer_impl.FSDPEngine.optimizer_step"
    hooks().add(OPTIMIZER, target, gives, patched=patched, why="" if patched else _gone(module), optional=True)


def _gone(module: ModuleType) -> str:
    return f"{module.__name__} has no such name in this version"


# -- hooks of a worker ---------------------------------------------------------------------------------


def _loss_computed(result: Any, config: Any, model_output: Any, data: Any, *__: Any, **___: Any) -> None:
    from verl.workers.utils.padding import no_padding_2_padding

    from rlvitals.integrations.verl.loss_pieces import pieces

    hooks().saw(LOSS)
    logp = no_padding_2_padding(model_output["log_probs"], data).detach()
    mode = str(config.policy_loss.get("loss_mode", "vanilla"))
    low, high = float(config.clip_ratio_low), float(config.clip_ratio_high)
    for what, launch in pieces(_first(result), data, logp, low, high, by_sequence=mode in SEQUENCES):
        with Guard(f"measuring {what}"):
            LEDGER.add(launch())


def _first(result: Any) -> Any:
    return result[0] if isinstance(result, tuple) else result


def _step_begins(engine: Any, *_: Any, **__: Any) -> None:
    LEDGER.before = None
    if _is_policy(engine):
        from rlvitals.probes import updates
        from rlvitals.probes.parameters import measure_parameter_gradients

        LEDGER.add(measure_parameter_gradients(engine.module.named_parameters()))
        LEDGER.before = updates.sample_weights(engine.module.named_parameters(), seed=LEDGER.steps)
        LEDGER.steps += 1


def _step_done(_: Any, engine: Any, *__: Any, **___: Any) -> None:
    before, LEDGER.before = LEDGER.before, None
    if before is not None:
        from rlvitals.probes import updates

        hooks().saw(OPTIMIZER)
        LEDGER.add(updates.measure_update(before, engine.module.named_parameters()))


def _is_policy(engine: Any) -> bool:
    """A critic's engine has a value head."""
    return "value" not in type(engine).__name__.lower()


# -- what the driver asks for --------------------------------------------------------------------------


def take(worker: Any, data: Any) -> Any:
    """Carried out on each rank: what it has measured, as text, in a DataProto of one row."""
    import numpy as np

    told = ""
    with Guard("telling the driver"):
        told = json.dumps(_taken(worker))
    return type(data).from_dict(tensors={}, non_tensors={COLUMN: np.array([told], dtype=object)})


def _taken(worker: Any) -> Mapping[str, object]:
    from rlvitals.probes.tally import Tally

    began = time.perf_counter()
    found, LEDGER.found = LEDGER.found, []
    tally = Tally.zero()
    if _speaks(worker):
        for reduction in found:
            with Guard("summing up what a worker measured"):
                tally += reduction.tally()
    seconds, LEDGER.seconds = LEDGER.seconds + time.perf_counter() - began, 0.0
    return {"tally": tally.to_dict(), "seconds": seconds, "hooks": _told_hooks()}


def _told_hooks() -> dict[str, dict[str, object]]:
    """This process's table; ``seen`` since the driver last asked."""
    found: dict[str, dict[str, object]] = {}
    for hook in hooks():
        if hook.name in (LOSS, OPTIMIZER):
            found[hook.name] = {
                "target": hook.target,
                "gives": hook.gives,
                "patched": hook.patched,
                "why": hook.why,
                "optional": hook.optional,
                "seen": hook.seen,
                "failures": hook.failures,
                "error": hook.error,
            }
            hook.seen = 0
    return found


def _speaks(worker: Any) -> bool:
    """Ranks that hold copies of the same rows (of one tensor- or sequence-parallel group) are heard once."""
    engine = getattr(getattr(worker, "actor", None), "engine", None)
    says = getattr(engine, "is_mp_src_rank_with_outputs", None)
    return True if says is None else bool(says())


def count_poisoned(worker: Any, data: Any) -> Any:
    """Carried out on each rank: how many of its parameters hold a NaN or an infinity; NaN where none is shown."""
    import math

    import torch

    from rlvitals.integrations.verl.ranks_of_workers import ARGUMENT
    from rlvitals.probes.updates import local

    actor = getattr(worker, "actor", None)
    # an actor before there were engines holds its module itself
    module: Any = getattr(getattr(actor, "engine", actor), "module", None) or getattr(actor, "actor_module", None)
    found = math.nan
    with Guard("looking at the weights"):
        if hasattr(module, "parameters"):
            found = float(sum(not bool(local(p).isfinite().all()) for p in module.parameters()))
    return type(data).from_dict({ARGUMENT: torch.full((len(data.batch[ARGUMENT]), 1), found, dtype=torch.float64)})
