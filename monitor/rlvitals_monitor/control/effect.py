"""What a command did: its guiding signals before and after it, and a verdict by a stated test. Pure.

Each signal is turned into how far it is from health, averaged over `BLOCK` steps, and freed of the course that it
was on: Sen's slope before the change, at that end of its 90 % interval which makes the verdict hardest. Then the
rank sum of the blocks after it is compared with that before it (Mann & Whitney, one-sided, 1 %). Of signals that
nothing was done to one in fifty is told wrongly, one in ten where a step is much like the one before it
(autocorrelation 0.8); a move by two of the steps' own standard deviations is seen in two of three cases.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from rlvitals.contract.command import CommandKind
from rlvitals.contract.steering import SignalEffect
from rlvitals_monitor.control.ranks import chance_lower, slope

WINDOW = 50
"""Steps on either side."""
LEAST = 25
BLOCK = 5
CHANCE = 0.01
CONFIDENCE = 0.9
NEAR, FAR = 0.5, 1.5
"""KL is well between these multiples of its target."""

Point = tuple[int, float]


class Verdict(str, Enum):
    HELPED = "helped"
    NO_EFFECT = "no effect"
    WORSE = "worse"
    TOO_EARLY = "too early"
    NOT_JUDGED = "not judged"


class Turn(str, Enum):
    """What became of one signal; ``told`` has no direction of health here."""

    BETTER = "better"
    SAME = "same"
    WORSE = "worse"
    TOLD = "told"
    NOT_JUDGED = "not judged"


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Steps of one attempt: ``(first, step)`` before the change at ``step`` and ``(step, last]`` after it.

    ``closed``: nothing will be added: the run ended, or ``because`` of another change.
    """

    first: int
    step: int
    last: int
    closed: bool = False
    because: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guide:
    """``names``: the first that has a value counts. ``illness`` grows with the distance from health."""

    names: tuple[str, ...]
    illness: Callable[[float], float] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    verdict: Verdict
    reason: str
    signals: tuple[SignalEffect, ...] = ()


def guides(kind: CommandKind, target: float | None) -> tuple[Guide, ...]:
    """The signals by which a command of this kind is judged; none for one that changes no number.

    Reward is better higher, KL between 0.5 and 1.5 × its target (without one it is told only), and the KL pull
    below the policy's own. A gradient's size is told only.
    """
    known = target is not None and 0.0 < target < math.inf
    band = (lambda kl: max(NEAR - kl / target, kl / target - FAR, 0.0)) if known and target else None
    reward = Guide(names=("reward.mean",), illness=lambda value: -value)
    kl = Guide(names=("kl.capped", "kl.k3"), illness=band)
    pull = Guide(names=("kl.pull_ratio",), illness=lambda value: max(value - 1.0, 0.0))
    gradient = Guide(names=("gradient.norm",), illness=None)
    return {
        CommandKind.SET_KL_COEF: (reward, kl, pull),
        CommandKind.SCALE_LR: (reward, kl, gradient),
        CommandKind.SET_KNOB: (reward, kl),
    }.get(kind, ())


def judge(
    kind: CommandKind, target: float | None, window: Window, series: Mapping[str, Sequence[Point]]
) -> Effect:
    """``series``: metric → (step, value) in order, NaN and infinite ones too; what is missing is absent."""
    judged = guides(kind, target)
    if not judged:
        return Effect(
            verdict=Verdict.NOT_JUDGED, reason=f"{kind.value} changes no number that could have an effect"
        )
    signals = tuple(_signal(guide, window, series) for guide in judged)
    since, waited = window.step - window.first, window.last - window.step
    if not window.closed and waited < WINDOW:
        reason = f"{max(waited, 0)} of {WINDOW} steps since"
        return Effect(verdict=Verdict.TOO_EARLY, reason=reason, signals=signals)
    if min(since - 1, waited) < LEAST:
        side = f"{since - 1} steps before" if since - 1 < LEAST else f"{waited} steps after"
        reason = f"only {side} it{window.because and ', ' + window.because}; {LEAST} are needed"
        return Effect(verdict=Verdict.NOT_JUDGED, reason=reason, signals=signals)
    return _together(signals)


def _together(signals: tuple[SignalEffect, ...]) -> Effect:
    """Worse if anything got worse, whatever got better; a number that is none leaves nothing to be said."""
    broken = [s.reason for s in signals if s.turn == Turn.NOT_JUDGED.value and not s.missing]
    by = {turn: [s for s in signals if s.turn == turn.value] for turn in Turn}
    said = ", ".join(s.reason for s in signals)
    if broken:
        return Effect(verdict=Verdict.NOT_JUDGED, reason="; ".join(broken), signals=signals)
    if by[Turn.WORSE]:
        return Effect(verdict=Verdict.WORSE, reason=said, signals=signals)
    if by[Turn.BETTER]:
        return Effect(verdict=Verdict.HELPED, reason=said, signals=signals)
    verdict = Verdict.NO_EFFECT if by[Turn.SAME] else Verdict.NOT_JUDGED
    return Effect(verdict=verdict, reason=said, signals=signals)


def _signal(guide: Guide, window: Window, series: Mapping[str, Sequence[Point]]) -> SignalEffect:
    name = next((name for name in guide.names if series.get(name)), guide.names[0])
    points = [(step, value) for step, value in series.get(name, ()) if window.first < step <= window.last]
    before = [point for point in points if point[0] < window.step]
    after = [point for point in points if point[0] > window.step]
    turn, reason, missing = _turn(guide, name, before, after)
    return SignalEffect(
        metric=name,
        turn=turn.value,
        reason=reason,
        missing=missing,
        before=_mean(before),
        after=_mean(after),
        step=tuple(step for step, _ in points),
        value=tuple(value for _, value in points),
    )


def _turn(guide: Guide, name: str, before: Sequence[Point], after: Sequence[Point]) -> tuple[Turn, str, bool]:
    for step, value in (*before, *after):
        if not math.isfinite(value):
            return Turn.NOT_JUDGED, f"{name} is {_word(value)} at step {step}", False
    if min(len(before), len(after)) < LEAST:
        few = (
            "not measured"
            if not (before or after)
            else f"measured on {len(before)} steps before, {len(after)} after"
        )
        return Turn.NOT_JUDGED, f"{name} is {few}", True
    moved = f"{name} {_mean(before):.4g} → {_mean(after):.4g}"
    if guide.illness is None:
        return Turn.TOLD, f"{moved}, told only", False
    turn = compare(_blocks(before, guide.illness, last=True), _blocks(after, guide.illness, last=False))
    return turn, f"{moved} ({turn.value})", False


def compare(before: Sequence[tuple[float, float]], after: Sequence[tuple[float, float]]) -> Turn:
    """(time, illness) blocks: whether those after the change are other than their course led to expect."""
    at, values = [time for time, _ in before], [value for _, value in before]
    low, _, high = slope(at, values, CONFIDENCE)
    for turn, course in ((Turn.WORSE, high), (Turn.BETTER, low)):
        was, now = ([value - course * time for time, value in blocks] for blocks in (before, after))
        lower, higher = (was, now) if turn is Turn.WORSE else (now, was)
        if chance_lower(lower, higher) < CHANCE:
            return turn
    return Turn.SAME


def _blocks(
    points: Sequence[Point], illness: Callable[[float], float], *, last: bool
) -> list[tuple[float, float]]:
    """Means of `BLOCK` steps; what is left over is left out on the side away from the change."""
    extra = len(points) % BLOCK
    kept = points[extra:] if last else points[: len(points) - extra]
    return [
        (
            math.fsum(step for step, _ in kept[n : n + BLOCK]) / BLOCK,
            math.fsum(illness(value) for _, value in kept[n : n + BLOCK]) / BLOCK,
        )
        for n in range(0, len(kept), BLOCK)
    ]


def _mean(points: Sequence[Point]) -> float | None:
    """Of the finite values; None where there is none."""
    known = [value for _, value in points if math.isfinite(value)]
    return math.fsum(known) / len(known) if known else None


def _word(value: float) -> str:
    return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "−Inf"
