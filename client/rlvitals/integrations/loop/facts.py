"""What the loop's author says about the run once, and what follows for rules and commands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from rlvitals.contract.metrics import METRICS, Family
from rlvitals.guard import attempt

NOT_IN_LOSS = "vitals.loss said nothing of it in this step"
NO_COEFFICIENT = "not measured: rlvitals.run was told no kl_coef"
NO_WEIGHTS = "not measured: the loop does not say what weight its loss gives a token (loss_type, or weights=)"
NO_GROUPING = "not measured: neither group_size nor group_ids was given"
_REASONS = {
    Family.KL: NOT_IN_LOSS,
    Family.RATIO: NOT_IN_LOSS,
    Family.POLICY: NOT_IN_LOSS,
    Family.NUMERICS: NOT_IN_LOSS,
    Family.COMPONENT: "derived from rewards/<name>/mean where rules are judged",
    Family.GUARD: "no guard of this kind is switched on",
    Family.GRADIENT: "the loop shows no optimizer and no model",
}
_GENERATED = (Family.TEXT, Family.LENGTH, Family.REWARD)
_UNSAID = "the loop does not say it"
_NO_PHASE = "the loop does not say when it does this: with vitals.phase(…)"
_OWN_REASONS = {
    "gradient.norm": "vitals.gradient was not called in this step",
    "gradient.top_parameter_share": "vitals.gradients was not called in this step",
    "gradient.nonfinite_parameters": "vitals.gradients was not called in this step",
    "gradient.skipped_steps": "the loop shows no gradient scaler",
    "gradient.loss_scale": "the loop shows no gradient scaler",
    "numerics.nonfinite_gradient": "neither vitals.gradient nor vitals.gradients was called in this step",
    "numerics.nonfinite_weights": "the loop shows no optimizer and no model",
    "numerics.nonfinite_rewards": "vitals.rollout said nothing of rewards in this step",
    "policy.learning_rate": "the loop shows no optimizer",
    "kl.coef": NO_COEFFICIENT,
    "kl.parameter_grad_norm": "not measured: the loop's loss is its own, its KL term cannot be taken apart",
}
ABSENT = {
    metric.name: _OWN_REASONS.get(
        metric.name,
        _NO_PHASE if metric.name.startswith("progress.phase_") else _REASONS.get(metric.family, _UNSAID),
    )
    for metric in METRICS
    if metric.family is not Family.SELF and metric.family not in _GENERATED
}
"""Why a metric is missing where nobody told of it; what a generation tells has a reason of its own."""

GROUPED = (
    "reward.group_std",
    "reward.zero_std_groups",
    "reward.all_right_groups",
    "reward.all_wrong_groups",
    "reward.all_equal_groups",
    "reward.group_size",
    "reward.single_groups",
    "reward.advantage_equal_group_max",
    "text.duplicate_rate",
)
WEIGHTED = ("kl.grad_norm", "kl.pull_ratio", "kl.share_of_gradient")

Number: TypeAlias = "float | Callable[[], float] | None"


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The arguments of `rlvitals.run`, by their names there."""

    model: Any = None
    optimizer: Any = None
    scheduler: Any = None
    tokenizer: Any = None
    embedding_rows: int | None = None
    token_ranges: Mapping[str, Any] | None = None
    stop_ids: frozenset[int] = frozenset()
    length_cap: int | None = None
    group_size: int | None = None
    kl_coef: Number = None
    kl_estimator: str = "k3"
    kl_clamp: str | None = None
    loss_type: str | None = None
    accumulation: int = 1
    epsilon: float = 0.2
    epsilon_high: float | None = None
    reward_names: Sequence[str] = ()
    reward_weights: Sequence[float] | None = None
    reward_range: tuple[float, float] | None = None
    texts: bool = True
    absent: Mapping[str, str] = field(default_factory=dict)
    tells: frozenset[str] | None = None
    """The registry's metrics that are this process's to tell where several write one run; None for all."""

    def config(self) -> dict[str, object]:
        """The run's settings by the names that rules use; what was not said is left out."""
        named = {
            "group_size": self.group_size,
            "length_cap": self.length_cap,
            "kl_coef": now(self.kl_coef),
            "kl_estimator": self.kl_estimator if self.kl_coef is not None else None,
            "loss_type": self.loss_type,
            "gradient_accumulation_steps": self.accumulation,
            "epsilon_low": self.epsilon,
            "epsilon_high": self.epsilon if self.epsilon_high is None else self.epsilon_high,
            "reward_functions": list(self.reward_names) or None,
        }
        return {name: value for name, value in named.items() if value is not None}

    def rows(self) -> int | None:
        """Rows of the embedding: as told, else the model's own."""
        return self.embedding_rows if self.embedding_rows is not None else attempt(_embedding_rows, self.model)

    def withheld(self) -> dict[str, str]:
        """Metrics that what has been told so far does not allow, with the reasons."""
        found = dict.fromkeys(GROUPED, NO_GROUPING) if self.group_size is None else {}
        if self.loss_type is None:
            found |= dict.fromkeys(WEIGHTED, NO_WEIGHTS)
        if self.kl_coef is None:
            found |= dict.fromkeys(WEIGHTED, NO_COEFFICIENT)
        return {name: self.absent.get(name, reason) for name, reason in found.items()}


@dataclass(slots=True)
class Coefficient:
    """The KL coefficient in force: read through a function, or as it was last told."""

    source: Number
    get: Callable[[], float] | None = field(default=None)

    def now(self) -> float | None:
        return now(self.get if self.get is not None else self.source)

    def told(self, value: float) -> None:
        """The loop has taken it over; where it is read through a function that one says whether it has."""
        if not callable(self.source):
            self.source = value


def now(number: Number) -> float | None:
    """A number, or what a function says at this moment; None where there is none."""
    value = attempt(number) if callable(number) else number
    return None if value is None else attempt(float, value)


def _embedding_rows(model: Any) -> int | None:
    core = getattr(model, "module", model)
    return int(core.get_input_embeddings().weight.shape[0]) or None
