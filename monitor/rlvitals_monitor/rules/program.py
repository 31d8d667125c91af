"""From the checked tree to closures: one call a node, nothing looked up twice, every outcome accounted for."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rlvitals_monitor.rules.baselines import MEMORIES, Memory, Slot
from rlvitals_monitor.rules.expression import (
    Arithmetic,
    Call,
    Comparison,
    ConfigName,
    Junction,
    Literal,
    MetricName,
    Negative,
    Node,
    Not,
    Now,
    metrics_of,
    walk,
)
from rlvitals_monitor.rules.functions import Family, Kind
from rlvitals_monitor.rules.value import Number, Unknown, Verdict
from rlvitals_monitor.rules.window import STATISTICS, Window

NO_SLOT: Slot = []
CHANGES_MEASURE = frozenset({"abs", "log", "sqrt", "mad", "slope", "robust_z"})
"""What they come to is no value of the metric."""


class Frame:
    """One evaluation: what may be read, and (by canonical text) what the remembering functions got and came to."""

    __slots__ = ("given", "inputs", "results", "slots", "values", "window")

    def __init__(self, window: Window, slots: Mapping[str, Slot]) -> None:
        self.window, self.values, self.slots = window, window.values, slots
        self.given: dict[str, tuple[float, float] | Unknown] = {}
        self.results: dict[str, Number] = {}
        self.inputs: dict[str, float] = {}


Numeric = Callable[[Frame], Number]
Truthful = Callable[[Frame], Verdict]
Textual = Callable[[Frame], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembering:
    """One call with a memory: its argument is read and learned from at every step, its result where asked."""

    key: str
    name: str
    count: int
    memory: Memory
    argument: Numeric
    extra: Numeric | None
    not_a_number: Unknown

    def read(self, frame: Frame) -> None:
        """Fills ``frame.given``, and ``frame.inputs`` where there is something to learn."""
        x = self.argument(frame)
        if isinstance(x, Unknown):
            frame.given[self.key] = x
            return
        extra = self.extra(frame) if self.extra is not None else 0.0
        if x != x or isinstance(extra, Unknown):
            frame.given[self.key] = extra if isinstance(extra, Unknown) and x == x else self.not_a_number
            return
        frame.given[self.key] = (x, extra)
        if x - x == 0:  # finite
            frame.inputs[self.key] = x

    def result(self, frame: Frame) -> Number:
        """What it comes to at this step; computed once."""
        known = frame.results.get(self.key)
        if known is None:
            known = frame.results[self.key] = self._result(frame)
        return known

    def _result(self, frame: Frame) -> Number:
        given = frame.given[self.key]
        if isinstance(given, Unknown):
            return given
        return self.memory.read(frame.slots.get(self.key, NO_SLOT), given[0], self.count, given[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """A comparison of numbers, kept to say which value met which threshold. ``metrics`` are the left side's; where
    ``bounds`` is False a difference, a slope or a product of them is compared, and no value of theirs.
    ``measured`` is the left side as it is written, ``sign`` how it is compared."""

    truth: Truthful
    value: Numeric
    threshold: Numeric
    metrics: tuple[str, ...]
    bounds: bool = True
    measured: str = ""
    sign: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One compiled expression, a number or a truth. ``remembering`` must be read, in order, before it is run."""

    text: str
    metrics: tuple[str, ...]
    depth: Mapping[str, int]
    remembering: tuple[Remembering, ...]
    sides: tuple[Side, ...]
    number: Numeric
    truth: Truthful


def compile_node(node: Node) -> Program:
    """The program of a tree from `expression.parse`."""
    calls = [n for n in walk(node) if isinstance(n, Call)]
    remembering = {c.text: _remembering(c) for c in calls if c.function.family is Family.MEMORY}
    return Program(
        text=node.text,
        metrics=metrics_of(node),
        depth=_depth(calls),
        remembering=tuple(remembering.values()),
        sides=tuple(_sides(node)),
        number=_number(node) if node.kind is Kind.NUMBER else lambda frame: Unknown("not a number"),
        truth=_truth(node) if node.kind is Kind.TRUTH else lambda frame: Unknown("not a truth"),
    )


def _depth(calls: Sequence[Call]) -> dict[str, int]:
    depth: dict[str, int] = {}
    for call in calls:
        if call.function.family is Family.WINDOW:
            (name,) = metrics_of(call)
            depth[name] = max(depth.get(name, 0), call.count)
    return depth


def _sides(node: Node) -> list[Side]:
    """The comparisons outside of any ``not``, in the order of the text."""
    if isinstance(node, Junction):
        return [side for part in node.parts for side in _sides(part)]
    if not isinstance(node, Comparison) or node.left.kind is not Kind.NUMBER:
        return _nonfinite_side(node)
    metrics = metrics_of(node.left)
    if not metrics:
        return []
    truth, value, threshold = _truth(node), _number(node.left), _number(node.right)
    return [
        Side(
            truth=truth,
            value=value,
            threshold=threshold,
            metrics=metrics,
            bounds=_keeps_measure(node.left),
            measured=node.left.text[1:-1] if isinstance(node.left, Arithmetic) else node.left.text,
            sign=node.operator,
        )
    ]


def _keeps_measure(node: Node) -> bool:
    """Whether the number stands on the axis of its metric: the metric, or a mean, an extreme, an earlier value."""
    if isinstance(node, Call):
        arguments = [part for part in node.arguments if metrics_of(part)]
        return node.function.name not in CHANGES_MEASURE and all(map(_keeps_measure, arguments))
    return isinstance(node, MetricName)


def _nonfinite_side(node: Node) -> list[Side]:
    if not isinstance(node, Call) or node.function.name not in ("nonfinite", "isnan"):
        return []
    metric = node.arguments[0]
    nothing: Numeric = lambda frame: Unknown("no threshold")  # noqa: E731
    value, name = _number(metric), metric.text
    return [Side(truth=_truth(node), value=value, threshold=nothing, metrics=(name,), measured=name)]


def _number(node: Node) -> Numeric:
    if isinstance(node, Literal):
        constant = float(node.value)
        return lambda frame: constant
    if isinstance(node, MetricName):
        return _metric(node.name)
    if isinstance(node, ConfigName):
        return _setting(node.name)
    if isinstance(node, Now):
        return _now(node.name)
    if isinstance(node, Negative):
        return _negative(_number(node.operand))
    if isinstance(node, Arithmetic):
        return _arithmetic(node.operator, _number(node.left), _number(node.right), node.text)
    if isinstance(node, Call):
        return _CALLS[node.function.family](node)
    raise TypeError(f"{type(node).__name__} gives no number")


def _truth(node: Node) -> Truthful:
    if isinstance(node, Literal):
        truth = bool(node.value)
        return lambda frame: truth
    if isinstance(node, Not):
        return _not(_truth(node.operand))
    if isinstance(node, Junction):
        return _junction(node.every, tuple(_truth(part) for part in node.parts))
    if isinstance(node, Comparison):
        return _text_comparison(node) if node.left.kind is Kind.TEXT else _comparison(node)
    if isinstance(node, Call):
        return _POINT_TRUTHS[node.function.name](node.arguments[0].text)
    raise TypeError(f"{type(node).__name__} gives no truth")


def _not(inner: Truthful) -> Truthful:
    def read(frame: Frame) -> Verdict:
        truth = inner(frame)
        return truth if isinstance(truth, Unknown) else not truth

    return read


def _junction(every: bool, parts: tuple[Truthful, ...]) -> Truthful:
    """``and``: false as soon as one is false, else the first unknown, else true; ``or``: the other way round."""
    decides = not every

    def read(frame: Frame) -> Verdict:
        unknown: Unknown | None = None
        for part in parts:
            truth = part(frame)
            if truth is decides:
                return decides
            if unknown is None and isinstance(truth, Unknown):
                unknown = truth
        return every if unknown is None else unknown

    return read


def _text(node: Node) -> Textual:
    """A setting that is not set to a text is the empty text: it equals no name."""
    if isinstance(node, Literal):
        text = str(node.value)
        return lambda frame: text
    name = node.text.removeprefix("config.")

    def read(frame: Frame) -> str:
        value = _look_up(frame.window.config, name)
        return value if isinstance(value, str) else ""

    return read


def _metric(name: str) -> Numeric:
    absent = Unknown(f"{name} is missing")
    return lambda frame: frame.values.get(name, absent)


def _setting(name: str) -> Numeric:
    """A setting that is true or false reads as 1 or 0."""
    absent = Unknown(f"config.{name} is not set to a number")

    def read(frame: Frame) -> Number:
        value = _look_up(frame.window.config, name)
        if not isinstance(value, (int, float)):
            return absent
        try:
            return float(value)
        except OverflowError:
            return absent

    return read


def _look_up(config: Mapping[str, object], name: str) -> object:
    """A setting by its full dotted name, or else one level down for each dot."""
    if name in config:
        return config[name]
    head, dot, rest = name.partition(".")
    inner = config.get(head)
    return _look_up(inner, rest) if dot and isinstance(inner, Mapping) else None


def _now(name: str) -> Numeric:
    if name == "step":
        return lambda frame: float(frame.window.step)
    return lambda frame: float(frame.window.observed)


def _negative(inner: Numeric) -> Numeric:
    def read(frame: Frame) -> Number:
        x = inner(frame)
        return x if isinstance(x, Unknown) else -x

    return read


_ARITHMETIC: dict[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}


def _arithmetic(sign: str, left: Numeric, right: Numeric, text: str) -> Numeric:
    compute, divides = _ARITHMETIC[sign], sign == "/"
    by_zero = Unknown(f"division by zero in {text}")

    def read(frame: Frame) -> Number:
        a = left(frame)
        if isinstance(a, Unknown):
            return a
        b = right(frame)
        if isinstance(b, Unknown):
            return b
        return by_zero if divides and b == 0 else compute(a, b)

    return read


_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


def _comparison(node: Comparison) -> Truthful:
    if isinstance(node.left, MetricName) and isinstance(node.right, Literal):
        return _metric_against_constant(node.left.name, _COMPARE[node.operator], float(node.right.value))
    left, right, compare = _number(node.left), _number(node.right), _COMPARE[node.operator]
    left_nan, right_nan = Unknown(f"{node.left.text} is NaN"), Unknown(f"{node.right.text} is NaN")
    if isinstance(node.right, Literal):
        return _against_constant(left, compare, float(node.right.value), left_nan)

    def read(frame: Frame) -> Verdict:
        a = left(frame)
        if isinstance(a, Unknown):
            return a
        b = right(frame)
        if isinstance(b, Unknown):
            return b
        if a != a:
            return left_nan
        return right_nan if b != b else compare(a, b)

    return read


def _metric_against_constant(name: str, compare: Callable[[float, float], bool], limit: float) -> Truthful:
    absent, not_a_number = Unknown(f"{name} is missing"), Unknown(f"{name} is NaN")

    def read(frame: Frame) -> Verdict:
        value = frame.values.get(name)
        if value is None:
            return absent
        return not_a_number if value != value else compare(value, limit)

    return read


def _against_constant(
    left: Numeric, compare: Callable[[float, float], bool], limit: float, not_a_number: Unknown
) -> Truthful:
    def read(frame: Frame) -> Verdict:
        a = left(frame)
        if isinstance(a, Unknown):
            return a
        return not_a_number if a != a else compare(a, limit)

    return read


def _text_comparison(node: Comparison) -> Truthful:
    left, right, equal = _text(node.left), _text(node.right), node.operator == "=="

    return lambda frame: (left(frame) == right(frame)) is equal


def _remembering(call: Call) -> Remembering:
    numbers = [_number(argument) for argument in call.arguments]
    return Remembering(
        key=call.text,
        name=call.function.name,
        count=call.count,
        memory=MEMORIES[call.function.name],
        argument=numbers[0],
        extra=numbers[1] if len(numbers) > 1 else None,
        not_a_number=Unknown(f"the argument of {call.function.name} is NaN"),
    )


def _memory_call(call: Call) -> Numeric:
    return _remembering(call).result


def _window_call(call: Call) -> Numeric:
    name, metric, count = call.function.name, call.arguments[0].text, call.count
    compute = STATISTICS[name]
    return lambda frame: frame.window.statistic(name, metric, count, compute)


def _point_call(call: Call) -> Numeric:
    numbers = tuple(_number(argument) for argument in call.arguments)
    if call.function.name == "default":
        return _default(*numbers)
    if call.function.name in ("min", "max"):
        return _extreme(min if call.function.name == "min" else max, numbers)
    compute = _POINT_NUMBERS[call.function.name]

    def read(frame: Frame) -> Number:
        x = numbers[0](frame)
        return x if isinstance(x, Unknown) else compute(x)

    return read


def _default(first: Numeric, second: Numeric) -> Numeric:
    def read(frame: Frame) -> Number:
        x = first(frame)
        return second(frame) if isinstance(x, Unknown) else x

    return read


def _extreme(pick: Callable[[list[float]], float], numbers: tuple[Numeric, ...]) -> Numeric:
    def read(frame: Frame) -> Number:
        values: list[float] = []
        for number in numbers:
            x = number(frame)
            if isinstance(x, Unknown):
                return x
            values.append(x)
        return math.nan if any(x != x for x in values) else pick(values)

    return read


def _log(x: float) -> Number:
    return x if x != x else math.log(x) if x > 0 else Unknown("the logarithm of a number that is not positive")


def _sqrt(x: float) -> Number:
    return x if x != x else math.sqrt(x) if x >= 0 else Unknown("the square root of a negative number")


_POINT_NUMBERS: dict[str, Callable[[float], Number]] = {"abs": abs, "log": _log, "sqrt": _sqrt}


def _nonfinite(metric: str) -> Truthful:
    absent = Unknown(f"{metric} is missing")

    def read(frame: Frame) -> Verdict:
        value = frame.values.get(metric)
        return absent if value is None else not math.isfinite(value)

    return read


def _isnan(metric: str) -> Truthful:
    absent = Unknown(f"{metric} is missing")

    def read(frame: Frame) -> Verdict:
        value = frame.values.get(metric)
        return absent if value is None else math.isnan(value)

    return read


def _missing(metric: str) -> Truthful:
    return lambda frame: metric not in frame.values


_POINT_TRUTHS: dict[str, Callable[[str], Truthful]] = {
    "nonfinite": _nonfinite,
    "isnan": _isnan,
    "missing": _missing,
}
_CALLS: dict[Family, Callable[[Call], Numeric]] = {
    Family.POINT: _point_call,
    Family.WINDOW: _window_call,
    Family.MEMORY: _memory_call,
}
