"""For each alert the scenario that shows it best, judged by the live engine, with what a picture of it needs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from pathlib import Path

from rlvitals.contract.alert import Severity
from rlvitals_monitor.alerts.replay import Episode, episodes, replay
from rlvitals_monitor.alerts.scenario import Scenario, read_scenarios
from rlvitals_monitor.rules.expression import (
    Call,
    Comparison,
    Junction,
    Literal,
    MetricName,
    Negative,
    Node,
    metrics_of,
    parse,
    walk,
)
from rlvitals_monitor.rules.functions import Kind
from rlvitals_monitor.rules.loader import load_rules
from rlvitals_monitor.rules.rule import Rule

SCENARIOS = Path(__file__).parents[1] / "tests" / "scenarios"
FEWEST_STEPS = 8
"""A scenario of fewer steps is shown only where there is no other."""
ON_SCALE = frozenset({"default", "abs", "mean", "median", "lowest", "highest", "ema"})
"""What these give is of the metric's own scale, so that a threshold for it can stand beside its curve."""


class Origin(str, Enum):
    RULE = ""
    SETTINGS = "the run's settings"
    PAST = "the run's own past"


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """``of`` says what is held against it where that is not the value itself: ``mean of 25 steps``.

    Where the run's own past gives it, ``value`` is what it came to at the firing step.
    """

    value: float
    origin: Origin
    of: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Firing:
    severity: Severity
    step: int
    resolved: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One alert's scenario. ``points`` are (step, value), None where the step lacks the metric."""

    alert: str
    name: str
    file: str
    metric: str
    points: tuple[tuple[int, float | None], ...]
    firings: tuple[Firing, ...]
    threshold: Threshold | None


@cache
def shown() -> Mapping[str, Shown]:
    """By alert, for every alert of the catalogue that fires in some scenario."""
    scenarios = [(path.name, s) for path in sorted(SCENARIOS.glob("*.yaml")) for s in _read(path)]
    rules = load_rules()
    groups = {rule.alert: rule.group for rule in rules}
    best = ((alert, _best(alert, scenarios, group)) for alert, group in sorted(groups.items()))
    return {alert: _show(alert, *chosen, rules) for alert, chosen in best if chosen is not None}


def _read(path: Path) -> list[Scenario]:
    return read_scenarios(path.read_text(encoding="utf-8"), path.name)


def _best(alert: str, scenarios: Sequence[tuple[str, Scenario]], group: str) -> tuple[str, Scenario] | None:
    """Of those in which it fires the first that has some steps, a warning or worse, and no other alert."""

    def strange(file: str, scenario: Scenario) -> tuple[bool, bool, int, bool]:
        others = {name for name, *_ in scenario.expected if name != alert}
        grave = any(name == alert and level != Severity.INFO.value for name, level, *_ in scenario.expected)
        return len(scenario.steps) < FEWEST_STEPS, not grave, len(others), file != f"{group}.yaml"

    fires = [(file, s) for file, s in scenarios if any(name == alert for name, *_ in s.expected)]
    return min(fires, key=lambda pair: strange(*pair), default=None)


def _show(alert: str, file: str, scenario: Scenario, rules: Sequence[Rule]) -> Shown:
    found = [e for e in episodes(replay(rules, scenario.steps, scenario.config)) if e.alert == alert]
    first = found[0]
    metric = _drawn(first, scenario)
    return Shown(
        alert=alert,
        name=scenario.name,
        file=file,
        metric=metric,
        points=tuple((step, values.get(metric)) for step, _, values in scenario.steps),
        firings=tuple(Firing(severity=e.severity, step=e.fired, resolved=e.resolved) for e in found),
        threshold=_threshold(first, metric),
    )


def _drawn(episode: Episode, scenario: Scenario) -> str:
    """The metric that the alert named, or the first one that its rule needs and the scenario has.

    One that never changes gives way to another of the rule's that does: there the cause is to be seen.
    """
    rule, named = episode.judgement.rule, episode.judgement.evaluation.metric
    logged = list(dict.fromkeys(name for _, _, values in scenario.steps for name in values))
    needed = [name for names in rule.needs for name in names] if rule is not None else []
    candidates = [name for name in (named, *needed) if name in logged] or logged[:1]
    changing = (
        name for name in candidates if len({repr(values.get(name)) for _, _, values in scenario.steps}) > 1
    )
    return next(changing, candidates[0])


def _threshold(episode: Episode, metric: str) -> Threshold | None:
    """The number that the alert named beside its value, if both are of the metric's scale."""
    rule, number = episode.judgement.rule, episode.judgement.evaluation.threshold
    if rule is None or number is None or not math.isfinite(number):
        return None
    sides = _comparisons(parse(rule.expr.text, Kind.TRUTH))
    named = (side for side in sides if metric in metrics_of(side.left) and _constant(side.right) in (None, number))
    side = next(named, None)
    if side is None or not _is_on_scale(side.left):
        return None
    return Threshold(value=number, origin=_origin(side.right), of=_of(side.left))


def _constant(node: Node) -> float | None:
    if isinstance(node, Negative) and isinstance(node.operand, Literal):
        return -float(node.operand.value)
    return float(node.value) if isinstance(node, Literal) else None


def _origin(node: Node) -> Origin:
    if metrics_of(node):
        return Origin.PAST
    return Origin.RULE if _constant(node) is not None else Origin.SETTINGS


def _comparisons(node: Node) -> Iterator[Comparison]:
    if isinstance(node, Junction):
        for part in node.parts:
            yield from _comparisons(part)
    elif isinstance(node, Comparison) and node.left.kind is Kind.NUMBER:
        yield node


def _is_on_scale(node: Node) -> bool:
    return all(
        isinstance(n, (MetricName, Literal)) or (isinstance(n, Call) and n.function.name in ON_SCALE)
        for n in walk(node)
    )


def _of(node: Node) -> str:
    if isinstance(node, Call) and node.count and isinstance(node.arguments[0], MetricName):
        words = {"lowest": "least", "highest": "greatest", "ema": "exponential mean"}
        return f"{words.get(node.function.name, node.function.name)} of {node.count} steps"
    return ""
