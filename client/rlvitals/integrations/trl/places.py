"""The methods of TRL's trainers that are wrapped, by which releases have them; needs neither torch nor TRL."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from rlvitals.integrations.hooks import HookState, HookTable
from rlvitals.integrations.samples import GENERATED

ASYNC = "AsyncGRPOTrainer scores and trains in a loop of its own, without reference and coefficient"
LIGER = "Liger's fused loss never shows log-probs (in TRL before 1.14)"
SCALARS = "this trainer has no such step: it is told by what it logs"
NO_REWARDS = "not measured: this TRL shows no rewards by completion, only what it logs of them"
OF_REWARDS = tuple(name for name in GENERATED if name.startswith(("reward.", "numerics.")))
LOGPROBS, LOSS, REWARDS, GENERATION = "log-probs", "loss", "rewards", "generation"
CLIP, EVALUATE, SAVE, STEPS, LOG = "clipping", "evaluate", "save", "steps", "log"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The first of ``methods`` that a trainer has is wrapped; ``since`` is the first release with any of them."""

    name: str
    methods: tuple[str, ...]
    gives: str
    since: tuple[int, int]
    of_accelerator: bool = False
    optional: bool = False

    def owner(self, trainer: Any) -> Any:
        return trainer.accelerator if self.of_accelerator else trainer

    def method(self, owner: Any) -> str:
        """The method that ``owner`` has, "" where it has none."""
        return next((name for name in self.methods if getattr(owner, name, None) is not None), "")

    def target(self, kind: str, method: str) -> str:
        return f"Accelerator.{method}" if self.of_accelerator else f"{kind}.{method}"


PLACES = (
    Place(
        name=GENERATION,
        methods=("_generate_and_score_completions",),
        gives="texts, lengths, advantages",
        since=(0, 16),
    ),
    Place(name=REWARDS, methods=("_calculate_rewards",), gives="rewards by group and function", since=(0, 19)),
    Place(
        name=LOGPROBS,
        methods=("_get_per_token_logps_and_entropies", "_get_per_token_logps"),
        gives="KL, ratios, entropy, the policy's pull",
        since=(0, 15),
    ),
    Place(name=LOSS, methods=("compute_loss",), gives="the loss before any filter, advantages", since=(0, 14)),
    Place(
        name=CLIP,
        methods=("clip_grad_norm_",),
        gives="gradients before clipping, by parameter",
        since=(0, 14),
        of_accelerator=True,
    ),
    Place(name=EVALUATE, methods=("evaluate",), gives="time of evaluations", since=(0, 14), optional=True),
    Place(name=SAVE, methods=("_save_checkpoint",), gives="time of checkpoints", since=(0, 14), optional=True),
)


def shows_tensors(trainer: Any) -> bool:
    """Whether a trainer, or its class, is built like GRPO: its methods show the loss's own tensors."""
    logprobs = next(place for place in PLACES if place.name == LOGPROBS)
    return bool(logprobs.method(trainer)) and getattr(trainer, "compute_loss", None) is not None


def why_absent(place: Place, kind: str, release: str) -> str:
    """Why a trainer of class ``kind`` has no such method in this release of TRL."""
    if kind.startswith("AsyncGRPO"):
        return ASYNC
    numbers = _numbers(release)[:2]
    if numbers and numbers < place.since:
        return f"TRL {release} has no {' or '.join(place.methods)}: it came with {place.since[0]}.{place.since[1]}"
    return SCALARS if place.name in (GENERATION, REWARDS, LOGPROBS) else f"{kind} has no {place.methods[0]}"


def events(table: HookTable) -> None:
    """Enters the trainer's callbacks, which are always there."""
    table.add(STEPS, "TrainerCallback.on_step_end", "steps, commands, pauses", patched=True)
    table.add(LOG, "TrainerCallback.on_log", "the trainer's own scalars", patched=True, optional=True)


def patched(table: HookTable, name: str) -> bool:
    return any(hook.name == name and hook.state(0) is not HookState.ABSENT for hook in table)


def unseen(table: HookTable) -> dict[str, str]:
    """Metrics that a hook which this trainer has not would have given, with the reasons."""
    why = {hook.name: hook.why for hook in table if hook.state(0) is HookState.ABSENT}
    if GENERATION in why:
        return dict.fromkeys(GENERATED, why[GENERATION])
    return dict.fromkeys(OF_REWARDS, NO_REWARDS) if REWARDS in why else {}


@cache
def release() -> str:
    """The installed release of TRL, "" where there is none."""
    try:
        return version("trl")
    except PackageNotFoundError:
        return ""


def rescales_generation() -> bool:
    """Whether the losses that divide by a generation's tokens count those of one accumulation only (1.9.1)."""
    numbers = _numbers(release())
    return not numbers or numbers >= (1, 9, 1)


def _numbers(written: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", written)[:3])


def scalars(table: HookTable, why: str, *, kind: str = "Trainer") -> None:
    """Enters what only a trainer's tensors would show, as absences that are no fault."""
    for place in PLACES:
        if place.name in (GENERATION, REWARDS, LOGPROBS, LOSS, CLIP):
            target = place.target(kind, place.methods[0])
            table.add(place.name, target, place.gives, patched=False, why=why, optional=True)
    events(table)
