"""One rule, one step: the pure function that live judging, back-tests and rule tests all call.

`evaluate` reads the window and the rule's memory and changes neither; `learn` moves the memory on afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from rlvitals.contract.alert import Truth
from rlvitals_monitor.rules.baselines import Slot
from rlvitals_monitor.rules.program import Frame, Side
from rlvitals_monitor.rules.rule import Rule
from rlvitals_monitor.rules.value import Number, Unknown, Verdict
from rlvitals_monitor.rules.window import Window


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One observed step of ``of: [k, n]``."""

    step: int
    time: datetime
    held: bool


@dataclass(slots=True, kw_only=True)
class RuleMemory:
    """What a rule keeps between steps.

    ``recent`` are the last n - 1 observed steps. ``open`` says that an alert of this name is pending or firing:
    then baselines are frozen. The engine sets it.
    """

    fingerprint: str = ""
    slots: dict[str, Slot] = field(default_factory=dict)
    recent: list[Seen] = field(default_factory=list)
    open: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """What a rule came to at a step.

    ``truth`` is after ``of: [k, n]``; ``held`` is this step's expression alone (None: unknown). ``since_*`` is the
    first of the steps that make it active. ``clear`` says whether the alert may close. ``argument`` is the
    action's, where the rule is active and has one.
    """

    truth: Truth
    reason: str
    held: bool | None = None
    clear: Truth = Truth.UNKNOWN
    value: float | None = None
    threshold: float | None = None
    metric: str = ""
    since_step: int = -1
    since_time: datetime | None = None
    argument: float | None = None
    inputs: Mapping[str, float] = field(default_factory=dict)


def evaluate(rule: Rule, window: Window, memory: RuleMemory) -> Evaluation:
    """Pure. Raises nothing for any input values; see `Evaluation`."""
    frame = Frame(window=window, slots=memory.slots)
    for call in rule.remembering:
        call.read(frame)
    absent = _absent(rule, window)
    if absent:
        return Evaluation(truth=Truth.UNKNOWN, reason=absent, inputs=frame.inputs)
    if window.observed <= rule.warmup:
        reason = f"warm-up: step {window.observed} of {rule.warmup}"
        return Evaluation(truth=Truth.UNKNOWN, reason=reason, inputs=frame.inputs)
    held = rule.expr.truth(frame)
    clear = _clear(rule, frame, held)
    side = _telling(rule.expr.sides, frame)
    value, threshold = (_known(side.value(frame)), _known(side.threshold(frame))) if side else (None, None)
    metric = side.metric if side else _first(rule.expr.metrics)
    if isinstance(held, Unknown):
        return Evaluation(
            truth=Truth.UNKNOWN,
            reason=held.reason,
            clear=clear,
            value=value,
            threshold=threshold,
            metric=metric,
            inputs=frame.inputs,
        )
    since, count = _since(rule, window, memory, held)
    active = count >= rule.of[0]
    return Evaluation(
        truth=Truth.ACTIVE if active else Truth.INACTIVE,
        reason=_reason(rule, count),
        held=held,
        clear=Truth.INACTIVE if active and rule.clear is None else clear,
        value=value,
        threshold=threshold,
        metric=metric,
        since_step=since.step,
        since_time=since.time,
        argument=_argument(rule, frame) if active else None,
        inputs=frame.inputs,
    )


def learn(rule: Rule, window: Window, memory: RuleMemory, evaluation: Evaluation) -> None:
    """Moves the memory past this step."""
    quiet = not memory.open and evaluation.held is not True
    warm = window.observed > rule.warmup
    for call in rule.remembering:
        x = evaluation.inputs.get(call.key)
        if x is not None:
            call.memory.learn(memory.slots.setdefault(call.key, []), x, call.count, quiet, warm)
    reach = rule.of[1] - 1
    if evaluation.held is not None and reach and window.time is not None:
        memory.recent.append(Seen(step=window.step, time=window.time, held=evaluation.held))
        del memory.recent[:-reach]


def depth_of(rules: Iterable[Rule]) -> dict[str, int]:
    """How many values of each metric a window must keep for these rules."""
    depth: dict[str, int] = {}
    for rule in rules:
        for program in rule.programs:
            for name, count in program.depth.items():
                depth[name] = max(depth.get(name, 0), count)
    return depth


def _absent(rule: Rule, window: Window) -> str:
    values = window.values
    for names in rule.needs:
        if not any(name in values for name in names):
            return f"{' or '.join(names)} is missing"
    return ""


def _clear(rule: Rule, frame: Frame, held: Verdict) -> Truth:
    verdict = held if rule.clear is None else rule.clear.truth(frame)
    if isinstance(verdict, Unknown):
        return Truth.UNKNOWN
    # Without an expression of its own an alert may close where its condition does not hold.
    return Truth.ACTIVE if verdict is not (rule.clear is None) else Truth.INACTIVE


def _since(rule: Rule, window: Window, memory: RuleMemory, held: bool) -> tuple[Seen, int]:
    now = Seen(step=window.step, time=_time(window), held=held)
    marks = [seen for seen in (*memory.recent, now) if seen.held]
    return (marks[0] if marks else now), len(marks)


def _time(window: Window) -> datetime:
    if window.time is None:
        raise ValueError("window: expected at least one step")
    return window.time


def _reason(rule: Rule, count: int) -> str:
    k, n = rule.of
    return f"held on {count} of the last {n} observed steps, {k} needed" if n > 1 else ""


def _telling(sides: tuple[Side, ...], frame: Frame) -> Side | None:
    """The first comparison that holds, else the first one: it names value and threshold."""
    for side in sides:
        if side.truth(frame) is True:
            return side
    return sides[0] if sides else None


def _argument(rule: Rule, frame: Frame) -> float | None:
    if rule.action is None or rule.action.argument is None:
        return None
    value = _known(rule.action.argument.number(frame))
    return value if value is not None and math.isfinite(value) else None


def _known(number: Number) -> float | None:
    return None if isinstance(number, Unknown) else number


def _first(metrics: tuple[str, ...]) -> str:
    return metrics[0] if metrics else ""
