"""The KL estimators as the trainers' losses evaluate them: value, derivative, and what their clamps take away.

With ``d = ref - logp`` of the sampled token, in natural logarithms, before any clamp:

==========  ================  ==========================
estimator   value             derivative by logp
==========  ================  ==========================
k1          -d                1
k2          d * d / 2         -d
k3          exp(d) - 1 - d    1 - exp(d)
abs         abs(d)            -sign(d)
k3+         exp(d) - 1 - d    -d  (straight through)
==========  ================  ==========================

(Schulman, "Approximating KL Divergence", 2020.) ``low_var_kl`` is k3. A clamp of the value to [-10, 10] takes the
derivative away beyond it; one that comes after exp only turns the derivative into NaN where exp overflows, since
the backward pass multiplies 0 by infinity, while the value stays 10.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from rlvitals.probes.arguments import check_choice

ESTIMATORS = ("k1", "k2", "k3", "abs", "k3+", "low_var_kl")
NONE, AFTER, BOTH = "none", "after", "before and after"
CLAMPS = (NONE, AFTER, BOTH)
CAP = 10.0


@dataclass(frozen=True, slots=True)
class Form:
    """One estimator with the clamps around it; ``estimator`` is one of k1, k2, k3, abs, k3+."""

    estimator: str
    clamp: str = NONE

    @classmethod
    def of(cls, estimator: str, clamp: str | None = None) -> Form:
        """By name. ``low_var_kl`` is clamped before and after unless told otherwise, the others are not.

        Raises ProbeArgumentError naming the estimators or clamps that are known.
        """
        check_choice("estimator", estimator, ESTIMATORS)
        if clamp is not None:
            check_choice("clamp", clamp, CLAMPS)
        if estimator == "low_var_kl":
            return cls("k3", BOTH if clamp is None else clamp)
        return cls(estimator, NONE if clamp is None else clamp)

    @property
    def clamped(self) -> bool:
        return self.clamp != NONE

    @property
    def lets_go(self) -> bool:
        """Whether tokens beyond the clamp feel no pull; a straight-through gradient knows no clamp."""
        return self.clamped and self.estimator != "k3+"

    @property
    def poisonous(self) -> bool:
        """Whether exp may overflow in front of the clamp: a finite loss with a NaN in its gradient."""
        return self.estimator == "k3" and self.clamp == AFTER

    def value(self, distance: float) -> float:
        """Before any clamp; +Inf where exp overflows a double."""
        if self.estimator == "k1":
            return -distance
        if self.estimator == "k2":
            return distance * distance / 2
        return abs(distance) if self.estimator == "abs" else k3(distance)

    def slope(self, distance: float) -> float:
        """The derivative by logp before any clamp; -Inf where exp overflows a double."""
        if self.estimator == "k1":
            return 1.0
        if self.estimator == "abs":
            return -math.copysign(1.0, distance) if distance else 0.0
        return -growth(distance) if self.estimator == "k3" else -distance

    def evaluated(self, distance: float) -> float:
        """The value that the loss sees."""
        value = self.value(distance)
        return max(-CAP, min(CAP, value)) if self.clamped else value

    def pull(self, distance: float, overflow: float = math.inf) -> float:
        """The derivative that the loss has, NaN where exp overflows (d > ``overflow``) in front of the clamp."""
        if self.poisonous and distance > overflow:
            return math.nan
        return 0.0 if self.lets_go and abs(self.value(distance)) > CAP else self.slope(distance)


FORMS: dict[tuple[str, str], Form] = {
    ("trl", "k3"): Form("k3"),
    ("verl", "k1"): Form("k1"),
    ("verl", "k2"): Form("k2"),
    ("verl", "abs"): Form("abs"),
    ("verl", "k3"): Form("k3", BOTH),
    ("verl", "low_var_kl"): Form("k3", BOTH),
    ("verl", "k3+"): Form("k3+", BOTH),
    ("verl 0.4.0", "low_var_kl"): Form("k3", AFTER),
    ("openrlhf", "k1"): Form("k1", AFTER),
    ("openrlhf", "k2"): Form("k2", AFTER),
    ("openrlhf", "k3"): Form("k3", BOTH),
    ("openrlhf 0.11.1", "k3"): Form("k3", AFTER),
    ("slime", "k1"): Form("k1"),
    ("slime", "k2"): Form("k2"),
    ("slime", "k3"): Form("k3"),
    ("slime", "low_var_kl"): Form("k3", AFTER),
}
"""(trainer, its own name) → form; a trainer with a version stands for that version and those before it."""


def growth(distance: float) -> float:
    """exp(d) - 1."""
    try:
        return math.expm1(distance)
    except OverflowError:
        return math.inf


def k3(distance: float) -> float:
    """exp(d) - 1 - d."""
    return growth(distance) - distance
