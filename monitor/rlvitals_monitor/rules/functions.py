"""The functions of the rule language: their parameters, what they give, and one sentence each for the docs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

LONGEST_WINDOW = 500
"""Most observed steps that a windowed function may look back."""


class Kind(str, Enum):
    """The type of an expression, or what a parameter takes."""

    NUMBER = "a number"
    TRUTH = "a truth (a comparison)"
    TEXT = "a text"
    METRIC = "a metric's name"
    COUNT = f"a whole number of steps from 1 to {LONGEST_WINDOW}"


class Family(str, Enum):
    """How a function is evaluated: from this step, from the window, or with a memory of its own."""

    POINT = "point"
    WINDOW = "window"
    MEMORY = "memory"


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """``least`` is the number of arguments that must be given; with ``many`` the last parameter may repeat."""

    name: str
    family: Family
    takes: tuple[Kind, ...]
    gives: Kind
    least: int
    meaning: str
    many: bool = False
    usual: int = 0

    @property
    def call(self) -> str:
        """The call as the docs show it, with what may be left out in brackets."""
        names = {Kind.NUMBER: "x", Kind.TRUTH: "t", Kind.TEXT: "s", Kind.METRIC: "metric", Kind.COUNT: "n"}
        parts = [names[kind] for kind in self.takes]
        shown = ", ".join(parts[: self.least]) + "".join(f"[, {part}]" for part in parts[self.least :])
        return f"{self.name}({shown}{', …' if self.many else ''})"


def _point(name: str, takes: tuple[Kind, ...], gives: Kind, meaning: str, *, many: bool = False) -> Function:
    return Function(
        name=name, family=Family.POINT, takes=takes, gives=gives, least=len(takes), meaning=meaning, many=many
    )


def _window(name: str, meaning: str) -> Function:
    takes = (Kind.METRIC, Kind.COUNT)
    return Function(name=name, family=Family.WINDOW, takes=takes, gives=Kind.NUMBER, least=2, meaning=meaning)


def _memory(name: str, takes: tuple[Kind, ...], meaning: str, *, least: int, usual: int = 0) -> Function:
    return Function(
        name=name, family=Family.MEMORY, takes=takes, gives=Kind.NUMBER, least=least, meaning=meaning, usual=usual
    )


_N, _C, _M = Kind.NUMBER, Kind.COUNT, Kind.METRIC

FUNCTIONS: dict[str, Function] = {
    function.name: function
    for function in (
        _point("abs", (_N,), _N, "Absolute value."),
        _point("log", (_N,), _N, "Natural logarithm; unknown at or below 0."),
        _point("sqrt", (_N,), _N, "Square root; unknown below 0."),
        _point("min", (_N, _N), _N, "Least of its arguments; NaN if one is NaN.", many=True),
        _point("max", (_N, _N), _N, "Greatest of its arguments; NaN if one is NaN.", many=True),
        _point("default", (_N, _N), _N, "The first argument, or the second where the first is unknown."),
        _point("nonfinite", (_M,), Kind.TRUTH, "This step's value is NaN or infinite."),
        _point("isnan", (_M,), Kind.TRUTH, "This step's value is NaN."),
        _point("missing", (_M,), Kind.TRUTH, "This step has no value; never unknown."),
        _window("mean", "Mean of the last n observed values, this step's included."),
        _window("median", "Median of the last n observed values."),
        _window("lowest", "Least of the last n observed values."),
        _window("highest", "Greatest of the last n observed values."),
        _window("mad", "Median absolute deviation of the last n observed values."),
        _window("slope", "Change per step by least squares over the last n observed values."),
        _memory("lag", (_N, _C), "The value n observed steps ago.", least=2),
        _memory("ema", (_N, _C), "Exponential mean with span n, this step included.", least=2),
        _memory("peak", (_N,), "Greatest finite value since the warm-up, this step included.", least=1),
        _memory("trough", (_N,), "Least finite value since the warm-up, this step included.", least=1),
        _memory(
            "baseline",
            (_N, _C),
            "Median of the last n (50) quiet steps before this one; frozen while the alert is open.",
            least=1,
            usual=50,
        ),
        _memory(
            "first_baseline",
            (_N, _C),
            "Median of the first n (50) quiet steps after the warm-up; never changes again.",
            least=1,
            usual=50,
        ),
        _memory(
            "robust_z",
            (_N, _N),
            "(x - median) / max(1.4826 MAD, second argument) against the last 50 quiet steps.",
            least=2,
            usual=50,
        ),
    )
}
