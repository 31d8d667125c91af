"""What a KL policy sees of one step, what it may do, and how it says so. Plain numbers, no clock, no I/O."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from rlvitals.contract.command import Bounds, CommandKind
from rlvitals_monitor.control.bounds import Limits, bounds_for, users_value

HOLDING_ALERTS = frozenset(
    {
        "degenerate_token",
        "forced_loss_tokens",
        "ids_out_of_range",
        "kl_grad_one_id",
        "kl_overflow",
        "negative_kl",
        "no_loss_tokens",
        "nonfinite",
        "nonfinite_metric",
        "nonfinite_ratios",
        "nonfinite_weights",
        "reference_mismatch",
        "rollout_mismatch",
        "rollout_mismatch_trend",
        "rollout_stale",
        "skipped_updates",
    }
)
"""Alerts of warning or above under which a KL is no guide: a token's, a mismatch's or a non-finite number's."""

START_ALERTS = frozenset({"reference_mismatch"})
"""Alerts about the first steps. What they found may never go away, so they would hold a policy for good."""
START_HOLD_STEPS = 200


class KlWhy(str, Enum):
    """The name of a decision: three changes, the rest are reasons to hold."""

    RAISE = "raise"
    LOWER = "lower"
    REVERT = "revert"
    NO_CAUSE = "no cause"
    NO_BASELINE = "no baseline"
    NO_TARGET = "no target"
    MISSING = "missing"
    NAN = "not a number"
    INFINITE = "infinite"
    NOT_POSITIVE = "not positive"
    ALERT = "alert open"
    WARM_UP = "warm-up"
    COOL_DOWN = "cool-down"
    OTHER_HAND = "other hand"
    FORCE = "force"
    AT_BOUND = "at bound"
    BEYOND = "beyond bounds"
    STOPPED = "stopped"
    WENT_BACK = "step went back"
    PAST = "past"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAlert:
    """One that fires, of warning or above; ``acknowledged``: a person looks after it."""

    name: str
    since_step: int
    acknowledged: bool = False


def holding(opened: Iterable[OpenAlert], step: int) -> frozenset[str]:
    """The names that speak of ``step``: one about the start does for 200 steps, or until it is acknowledged."""
    return frozenset(
        alert.name
        for alert in opened
        if alert.name not in START_ALERTS
        or not (alert.acknowledged or step - alert.since_step >= START_HOLD_STEPS)
    )


LARGEST = 1e100
"""A number beyond is as good as infinite, and its square would not be one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One training step. None is *not measured*; NaN and the infinities are values that were measured so.

    ``coefficient``: the KL coefficient in force. ``capped``: mean of min(k3, 10) per token in nats; ``k3``: its
    raw mean, which one token can hold up for long. ``pull_ratio``: KL pull over the policy's own. ``grad_max``:
    the largest |k3'| of a token. ``reward``: its mean. ``alerts``: names that are open, of warning or above.
    """

    step: int
    coefficient: float | None = None
    capped: float | None = None
    k3: float | None = None
    pull_ratio: float | None = None
    grad_max: float | None = None
    reward: float | None = None
    alerts: frozenset[str] = field(default_factory=frozenset)

    @property
    def kl(self) -> float | None:
        """The capped mean where there is one."""
        return self.k3 if self.capped is None else self.capped


@dataclass(frozen=True, slots=True, kw_only=True)
class KlChoice:
    """What a person sets for one run or project: a target of its own (nats per token), and narrower limits."""

    target: float | None = None
    factor: float | None = None
    change_steps: int | None = None

    def __post_init__(self) -> None:
        if self.target is not None and not 0.0 < self.target < math.inf:
            raise ValueError(f"target: expected a finite number above 0, got {self.target}")
        if self.factor is not None and not 1.0 < self.factor <= 2.0:
            raise ValueError(f"factor: expected above 1 and at most 2, got {self.factor}")
        if self.change_steps is not None and self.change_steps < 1:
            raise ValueError(f"change_steps: expected at least 1, got {self.change_steps}")


@dataclass(frozen=True, slots=True, kw_only=True)
class KlSettings:
    """``users``: the coefficient as the user set it. ``target``: KL per token in nats. Factors are above 1.

    ``factor``: the whole way from the user's value, at most 2. ``largest_change``: one change. ``change_steps``:
    from one change to the next. ``warmup_steps``: seen before the first one, since every KL starts at 0.
    ``force_limit``: what a raised coefficient times ``grad_max`` must stay under.
    """

    users: float | None
    target: float | None = None
    factor: float = 2.0
    largest_change: float = 1.25
    change_steps: int = 50
    warmup_steps: int = 50
    force_limit: float = 5.0

    def __post_init__(self) -> None:
        if not 1.0 < self.factor <= 2.0:
            raise ValueError(f"factor: expected above 1 and at most 2, got {self.factor}")
        if not 1.0 < self.largest_change <= self.factor:
            raise ValueError(
                f"largest_change: expected above 1 and at most {self.factor}, got {self.largest_change}"
            )
        if self.change_steps < 1 or self.warmup_steps < 2:
            raise ValueError("change_steps and warmup_steps: expected at least 1 and 2")
        if not 0.0 < self.force_limit < math.inf:
            raise ValueError(f"force_limit: expected a finite number above 0, got {self.force_limit}")

    @staticmethod
    def of(config: Mapping[str, object], limits: Limits) -> KlSettings:
        """From a run's configuration (``kl_coef``, ``kl_target``) and the operator's limits.

        Raises ValueError where the operator allows no automatic change (``automatic_factor`` 1).
        """
        target = config.get("kl_target")
        number = isinstance(target, (int, float)) and not isinstance(target, bool)
        return KlSettings(
            users=users_value(CommandKind.SET_KL_COEF, config),
            target=float(target) if number else None,  # type: ignore[arg-type]
            factor=min(limits.automatic_factor, 2.0),
            largest_change=min(1.25, limits.automatic_factor),
            change_steps=max(limits.cool_down_steps, 1),
        )

    def under(self, choice: KlChoice) -> KlSettings:
        """With a person's own, which never go beyond what the operator allows."""
        factor = min(self.factor, choice.factor or self.factor)
        return replace(
            self,
            target=self.target if choice.target is None else choice.target,
            factor=factor,
            largest_change=min(self.largest_change, factor),
            change_steps=max(self.change_steps, choice.change_steps or 0),
        )

    @property
    def bounds(self) -> Bounds | None:
        """Around the user's value and never at 0; None where that is missing, not finite or not positive."""
        limits = Limits(automatic_factor=self.factor)
        return bounds_for(CommandKind.SET_KL_COEF, {"kl_coef": self.users}, limits, automatic=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class KlDecision:
    """``value`` is the coefficient to set, or None to hold; ``reason`` says why, with the numbers."""

    step: int
    why: KlWhy
    reason: str
    value: float | None = None

    @property
    def holds(self) -> bool:
        return self.value is None


def check(step: int, name: str, value: float | None) -> KlDecision | None:
    """A named hold where ``value`` is missing, NaN or infinite (or beyond `LARGEST`)."""
    if value is None:
        return KlDecision(step=step, why=KlWhy.MISSING, reason=f"{name} is not measured")
    if math.isnan(value):
        return KlDecision(step=step, why=KlWhy.NAN, reason=f"{name} is NaN")
    if abs(value) > LARGEST:
        return KlDecision(step=step, why=KlWhy.INFINITE, reason=f"{name} is {value:+g}")
    return None


def check_positive(step: int, name: str, value: float | None, why: KlWhy) -> KlDecision | None:
    """As `check`, and ``why`` for 0 or below."""
    found = check(step, name, value)
    if found is None and value is not None and value <= 0.0:
        return KlDecision(step=step, why=why, reason=f"{name} is {value:g}, not above 0")
    return found
