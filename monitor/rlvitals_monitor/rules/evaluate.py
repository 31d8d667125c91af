"""One rule, one step: the pure function that live judging, back-tests and rule tests all call.

`evaluate` reads the window and the rule's memory and changes neither; `learn` moves the memory on afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import NamedTuple

from rlvitals.contract.alert import Truth, limit_of, measured_of
from rlvitals_monitor.rules.baselines import Slot
from rlvitals_monitor.rules.program import Frame, Side
from rlvitals_monitor.rules.rule import Rule
from rlvitals_monitor.rules.value import Number, Unknown, Verdict
from rlvitals_monitor.rules.window import Window

NOTHING: Mapping[str, float] = MappingProxyType({})


class Seen(NamedTuple):
    """One observed step of ``of: [k, n]``."""

    step: int
    time: datetime
    held: bool


@dataclass(slots=True, kw_only=True)
class RuleMemory:
    """What a rule keeps between steps.

    ``recent`` are the last n - 1 observed steps, from the first of them that held. ``open`` says that an alert of
    this name is pending or firing: then baselines are frozen. The engine sets it.
    """

    fingerprint: str = ""
    slots: dict[str, Slot] = field(default_factory=dict)
    recent: list[Seen] = field(default_factory=list)
    open: bool = False


class Evaluation(NamedTuple):
    """What a rule came to at a step.

    ``truth`` is after ``of: [k, n]``; ``held`` is this step's expression alone (None: unknown). ``clear`` says
    whether an open alert may close. ``since_*`` is the first of the steps that make it active. ``argument`` is the
    action's, where the rule is active and has one. ``bounds`` says that ``value`` and ``threshold`` are values of
    the metric; ``measured`` is what ``value`` is of where it is not the metric itself, and ``sign`` how they are
    compared, as the rule writes them. ``inputs`` is what `learn` wants to remember.
    """

    truth: Truth
    reason: str
    held: bool | None = None
    clear: Truth = Truth.UNKNOWN
    inputs: Mapping[str, float] = NOTHING
    since_step: int = -1
    since_time: datetime | None = None
    value: float | None = None
    threshold: float | None = None
    metric: str = ""
    argument: float | None = None
    bounds: bool = True
    measured: str = ""
    sign: str = ""

    @property
    def told(self) -> str:
        """Such as ``kl.pull_ratio = 4 (fires above 1)``; "" without a value."""
        if self.value is None:
            return ""
        words = limit_of(self.sign)
        against = "" if self.threshold is None else f" ({words.format(limit=f'{self.threshold:.4g}')})"
        return f"{measured_of(self.metric, self.measured)} = {self.value:.4g}{against}"


QUIET = Evaluation(Truth.INACTIVE, "", False)
"""What nearly every rule comes to at nearly every step."""


def evaluate(rule: Rule, window: Window, memory: RuleMemory) -> Evaluation:
    """Pure: changes neither window nor memory, and raises for no input values."""
    absent = lacking(rule, window.values)
    return Evaluation(Truth.UNKNOWN, absent) if absent else evaluate_measured(rule, window, memory)


def evaluate_measured(rule: Rule, window: Window, memory: RuleMemory) -> Evaluation:
    """The same for a rule that `lacking` says nothing of."""
    frame = Frame(window, memory.slots)
    for call in rule.remembering:
        call.read(frame)
    if window.observed <= rule.warmup:
        reason = f"warm-up: step {window.observed} of {rule.warmup}"
        return Evaluation(Truth.UNKNOWN, reason, inputs=frame.inputs)
    held = rule.expr.truth(frame)
    if held is False and not memory.recent and not memory.open:
        return Evaluation(Truth.INACTIVE, "", False, Truth.UNKNOWN, frame.inputs) if frame.inputs else QUIET
    clear = _clear(rule, frame, held) if memory.open else Truth.UNKNOWN
    if isinstance(held, Unknown):
        return Evaluation(Truth.UNKNOWN, held.reason, clear=clear, inputs=frame.inputs)
    return _counted(rule, frame, memory, held, clear)


def learn(rule: Rule, window: Window, memory: RuleMemory, evaluation: Evaluation) -> None:
    """Moves the memory past this step."""
    if rule.remembering:
        quiet = not memory.open and evaluation.held is not True
        warm = window.observed > rule.warmup
        for call in rule.remembering:
            x = evaluation.inputs.get(call.key)
            if x is not None:
                call.memory.learn(memory.slots.setdefault(call.key, []), x, call.count, quiet, warm)
    # Steps that did not hold matter only behind one that did: they push it out.
    reach = rule.of[1] - 1 if memory.recent or evaluation.held else 0
    if reach and evaluation.held is not None:
        memory.recent.append(Seen(window.step, _time(window), evaluation.held))
        del memory.recent[:-reach]
        while memory.recent and not memory.recent[0].held:
            del memory.recent[0]


class Reading(NamedTuple):
    """Which value stands against which threshold; None where it has none at this step. ``bounds``: both are values
    of the metric, and not of a difference or a slope of it."""

    metric: str
    value: float | None
    threshold: float | None
    bounds: bool = True


def read(rule: Rule, window: Window, memory: RuleMemory) -> Reading:
    """What people see of a rule that does not fire: the same comparison, with today's numbers. Pure."""
    if lacking(rule, window.values):
        return Reading(_first(rule.expr.metrics), None, None)
    frame = Frame(window, memory.slots)
    for call in rule.remembering:
        call.read(frame)
    return _reading(frame, *_shown(rule, frame))


def depth_of(rules: Iterable[Rule]) -> dict[str, int]:
    """How many values of each metric a window must keep for these rules."""
    depth: dict[str, int] = {}
    for rule in rules:
        for program in rule.programs:
            for name, count in program.depth.items():
                depth[name] = max(depth.get(name, 0), count)
    return depth


def lacking(rule: Rule, values: Container[str]) -> str:
    """Which metric the rule needs and a step lacks; empty if none."""
    for names in rule.needs:
        for name in names:
            if name in values:
                break
        else:
            return f"{' or '.join(names)} is missing"
    return ""


def _counted(rule: Rule, frame: Frame, memory: RuleMemory, held: bool, clear: Truth) -> Evaluation:
    """The verdict over the last n observed steps, with its numbers if it is active."""
    window, (k, n) = frame.window, rule.of
    marks = [seen for seen in memory.recent if seen.held]
    if held:
        marks.append(Seen(window.step, _time(window), True))
    reason = f"held on {len(marks)} of the last {n} observed steps, {k} needed" if n > 1 else ""
    if len(marks) < k:
        return Evaluation(Truth.INACTIVE, reason, held=held, clear=clear, inputs=frame.inputs)
    side, metric = _shown(rule, frame)
    reading = _reading(frame, side, metric)
    return Evaluation(
        truth=Truth.ACTIVE,
        reason=reason,
        held=held,
        clear=Truth.INACTIVE if rule.clear is None else clear,
        inputs=frame.inputs,
        since_step=marks[0].step,
        since_time=marks[0].time,
        value=reading.value,
        threshold=reading.threshold,
        metric=reading.metric,
        argument=_argument(rule, frame),
        bounds=reading.bounds,
        measured="" if side is None or side.measured == metric else side.measured,
        sign="" if side is None else side.sign,
    )


def _clear(rule: Rule, frame: Frame, held: Verdict) -> Truth:
    """Without an expression of its own an alert may close where its condition does not hold."""
    if rule.clear is None:
        return Truth.UNKNOWN if isinstance(held, Unknown) else Truth.INACTIVE if held else Truth.ACTIVE
    verdict = rule.clear.truth(frame)
    return Truth.UNKNOWN if isinstance(verdict, Unknown) else Truth.ACTIVE if verdict else Truth.INACTIVE


def _time(window: Window) -> datetime:
    if window.time is None:
        raise ValueError("window: expected at least one step")
    return window.time


def _shown(rule: Rule, frame: Frame) -> tuple[Side | None, str]:
    """The comparison that names value and threshold, and its metric: the first that holds, else the first one.

    One of a metric that was measured goes before one that holds by its default alone.
    """
    sides = rule.expr.sides
    if not sides:
        return None, _first(rule.expr.metrics)
    held = [side for side in sides if side.truth(frame) is True] or [sides[0]]
    measured = ((side, name) for side in held for name in side.metrics if name in frame.values)
    return next(measured, (held[0], held[0].metrics[0]))


def _reading(frame: Frame, side: Side | None, metric: str) -> Reading:
    if side is None:
        return Reading(metric, None, None)
    return Reading(metric, _known(side.value(frame)), _known(side.threshold(frame)), side.bounds)


def _argument(rule: Rule, frame: Frame) -> float | None:
    if rule.action is None or rule.action.argument is None:
        return None
    value = _known(rule.action.argument.number(frame))
    return value if value is not None and math.isfinite(value) else None


def _known(number: Number) -> float | None:
    return None if isinstance(number, Unknown) else number


def _first(metrics: tuple[str, ...]) -> str:
    return metrics[0] if metrics else ""
