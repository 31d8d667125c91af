"""On an actor rank: what the loss really saw of each micro-batch, kept until the controller asks for it.

The controller calls these functions by ``__ray_call__``, which Ray queues behind the rank's own work: nothing here
joins a collective, sends anything or waits, and a rank that does not answer costs the step its ratios, no more.
Gradients are those by log-probs: another backward pass would disturb DeepSpeed's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rlvitals.contract.report import Extreme
from rlvitals.guard import Guard
from rlvitals.integrations.hooks import HookTable, wrap
from rlvitals.integrations.loop import measure
from rlvitals.integrations.loop.facts import Facts
from rlvitals.integrations.loop.measure import MicroBatch
from rlvitals.integrations.openrlhf.weights import Weighting, importance
from rlvitals.integrations.pieces import LOSS
from rlvitals.integrations.steering import scale_learning_rate
from rlvitals.integrations.steps import Step
from rlvitals.probes.memory import tally_memory
from rlvitals.probes.reduction import Pending

TRAINING_STEP, LOSS_FUNCTION, BACKWARD = "training step", "policy loss", "backward"
PULL = "the policy's pull"
_PLACE = "_rlvitals"


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a rank must know of the run; it travels by pickle."""

    kl_in_loss: bool
    estimator: str
    clamp: str
    epsilon_low: float
    epsilon_high: float
    unbiased: bool
    pull: bool
    weighting: Weighting


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What a rank has seen since it was last asked: a tally as plain data, and the KL coefficient it was given."""

    rank: int
    micro_batches: int
    tally: dict[str, object]
    coefficients: tuple[float, ...]
    hooks: tuple[dict[str, object], ...]
    seconds: float


@dataclass(slots=True)
class Rank:
    """Lives in the actor's process. ``table`` says which hooks are in place here."""

    told: Told
    rank: int
    facts: Facts
    table: HookTable = field(default_factory=lambda: HookTable("openrlhf"))
    device: Any = None
    seconds: float = 0.0
    _step: Step = field(default_factory=Step)
    _coefficients: list[float] = field(default_factory=list)
    _loss: Any = None
    _seen: dict[str, Any] | None = None

    def install(self, trainer: Any) -> None:
        """Wraps the live trainer of this rank."""
        self._wrap(trainer, "training_step", TRAINING_STEP, "ratios, KL of the loss", after=self._ends)
        loss = getattr(trainer, "actor_loss_fn", None)
        self._wrap(loss, "forward", LOSS_FUNCTION, "the log-probs of the loss", after=self._loss_seen)
        strategy = getattr(trainer, "strategy", None)
        self._wrap(strategy, "backward", BACKWARD, "a loss that is NaN", optional=True, after=self._backward)

    def take(self) -> Shown:
        """All since the last call. On a GPU this waits for the device, which has nothing else to do by then."""
        done, self._step = self._step, Step()
        coefficients, self._coefficients = tuple(sorted(set(self._coefficients))), []
        seconds, self.seconds = self.seconds, 0.0
        tally = done.tally
        with Guard("waiting for the device"):
            if done.on_device:
                tally += Pending(done.on_device).tally()
        with Guard("reading memory"):
            if self.device is not None:
                tally += tally_memory(self.device)
        # OpenRLHF's own mean is told; the sum is over micro-batches of another weight each
        sums = {name: value for name, value in tally.sums.items() if name != LOSS}
        tally = replace(
            tally,
            sums=sums,
            minima=_without_place(tally.minima),
            maxima=_without_place(tally.maxima),
            firsts=_without_place(tally.firsts),
        )
        return Shown(
            rank=self.rank,
            micro_batches=done.micro_batches,
            tally=tally.to_dict(),
            coefficients=coefficients,
            hooks=tuple(self.table.rows()),
            seconds=seconds,
        )

    # -- what the trainer shows --------------------------------------------------------------------

    def _loss_seen(self, result: Any, logp: Any, old: Any, advantages: Any, *args: Any, **named: Any) -> None:
        """Kept for the end of the training step, which knows the ids."""
        names = ("action_mask", "rollout_log_probs")
        self._seen = {"logp": logp.detach(), "old": old, "advantages": advantages}
        self._seen |= dict(zip(names, args, strict=False)) | named
        self.table.saw(LOSS_FUNCTION)

    def _backward(self, result: Any, loss: Any, *_: Any, **__: Any) -> None:
        self._loss = loss.detach()
        self.table.saw(BACKWARD)

    def _ends(self, result: Any, experience: Any, kl_ctl: Any = None, *_: Any, **__: Any) -> None:
        seen, self._seen = self._seen, None
        loss, self._loss = self._loss, None
        if seen is None:
            raise LookupError("the training step ended without a call of its policy loss")
        coefficient = None if kl_ctl is None else float(kl_ctl)
        if coefficient is not None:
            self._coefficients.append(coefficient)
        batch = self._batch(seen, experience)
        self.device = next(batch.devices, self.device)
        self._step.micro_batches += 1
        for what, launch in measure.pieces(self.facts, coefficient, loss, batch):
            if what == PULL and not self.told.pull:
                continue
            with Guard(f"measuring {what}"):
                self._step.add([launch()])
        self.table.saw(TRAINING_STEP)

    def _batch(self, seen: dict[str, Any], experience: Any) -> MicroBatch:
        logp, mask = seen["logp"], seen.get("action_mask")
        weights = None
        with Guard("the weight of a token"):
            weights = self.told.weighting.weights(mask, seen)
            if weights is not None and self.told.unbiased:
                weights = weights * importance(logp, seen["old"])
        return MicroBatch.of(
            {
                "logp": logp,
                "old": seen["old"],
                "ref": experience.base_action_log_probs if self.told.kl_in_loss else None,
                "rollout": seen.get("rollout_log_probs"),
                "advantages": seen["advantages"],
                "mask": mask,
                "ids": _ids(experience, logp),
                "weights": weights,
            },
            advantages_told=True,
        )

    def _wrap(self, owner: Any, name: str, hook: str, gives: str, *, after: Any, optional: bool = False) -> None:
        done = owner is not None and wrap(owner, name, after=after, spent=self._spent, table=self.table, hook=hook)
        target = f"{type(owner).__name__}.{name}"
        why = "" if done else f"this release of OpenRLHF has no {target}"
        self.table.add(hook, target, gives, patched=done, why=why, optional=optional)

    def _spent(self, seconds: float) -> None:
        self.seconds += seconds


# -- called on the actor, by the controller ------------------------------------------------------------


def install(actor: Any, told: Told) -> list[dict[str, object]]:
    """Hooks a ``PolicyModelActor``'s trainer and returns the rows of its hooks; a second call changes nothing."""
    rank = getattr(actor, _PLACE, None)
    if rank is None:
        low, high = told.epsilon_low, told.epsilon_high
        accumulation = int(getattr(getattr(actor.trainer, "strategy", None), "accumulated_gradient", 1))
        told = replace(told, weighting=replace(told.weighting, accumulation=accumulation))
        facts = Facts(
            kl_coef=0.0,
            kl_estimator=told.estimator,
            kl_clamp=told.clamp,
            loss_type="grpo" if told.weighting.by_sequence else "dapo",
            epsilon=low,
            epsilon_high=high,
        )
        rank = Rank(told, int(getattr(actor, "_rank", 0)), facts)
        rank.install(actor.trainer)
        setattr(actor, _PLACE, rank)
    return list(rank.table.rows())


def take(actor: Any) -> Shown | None:
    """None where the actor was never hooked."""
    rank: Rank | None = getattr(actor, _PLACE, None)
    return None if rank is None else rank.take()


def learning_rate(actor: Any) -> float:
    return float(actor.actor_optim.param_groups[0]["lr"])


def scale(actor: Any, factor: float) -> tuple[float, float]:
    """Scales the actor's learning rate and its schedule; the rates before and after."""
    return scale_learning_rate(actor.actor_optim, actor.actor_scheduler, factor)


def _without_place(extremes: Mapping[str, Extreme]) -> dict[str, Extreme]:
    """Rows are shuffled on their way here and columns begin with the prompt: only the token itself is certain."""
    return {name: replace(extreme, sample=None, position=None) for name, extreme in extremes.items()}


def _ids(experience: Any, logp: Any) -> Any:
    """The token that each log-prob is of: log-probs stand one place before their token."""
    return experience.sequences[:, 1:][:, -logp.shape[1] :]
