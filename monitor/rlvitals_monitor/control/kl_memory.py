"""What a KL policy remembers between steps: immutable, so that a decision is a function of its inputs alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeGuard

from rlvitals_monitor.control.kl_decision import LARGEST, KlSettings, Observation

WINDOW = 50
"""Observations before and after a change that are compared."""
SMOOTH = 2.0 / 21.0
"""Weight of the newest in the 20-observation mean that tells whether KL still rises."""
TREND = 20
RECENT, LATEST = 20, 3
"""The level before a change is that of the last ones: what was under way is not the change's doing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Some observations of one signal. ``recent`` and ``latest``: means of the last `RECENT` and `LATEST`.

    ``rise``: the mean of the later half less that of the first.
    """

    mean: float
    recent: float
    latest: float
    spread: float
    rise: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A change that is not judged yet: the coefficient before and after, KL and reward before it."""

    step: int
    before: float
    after: float
    kl: Span
    reward: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class KlMemory:
    """``coefficient`` was in force or asked for last, ``previous`` before it.

    ``wish`` is the logarithm of the factor that a tracking rule has asked for since the last change.
    """

    step: int | None = None
    observed: int = 0
    coefficient: float | None = None
    previous: float | None = None
    changed_step: int | None = None
    ema: float | None = None
    smooth: tuple[float, ...] = ()
    low_since: int | None = None
    pulls: tuple[float, ...] = ()
    kls: tuple[float, ...] = ()
    rewards: tuple[float, ...] = ()
    wish: float = 0.0
    trial: Trial | None = None
    stopped: str = ""


def observe(memory: KlMemory, settings: KlSettings, seen: Observation) -> KlMemory:
    """Takes the step's finite numbers in; what is missing or not finite leaves its series as it is."""
    memory = replace(memory, observed=memory.observed + 1)
    if _finite(seen.pull_ratio):
        memory = replace(memory, pulls=(*memory.pulls, seen.pull_ratio)[-WINDOW:])
    if _finite(seen.reward):
        memory = replace(memory, rewards=(*memory.rewards, seen.reward)[-WINDOW:])
    if _finite(seen.kl):
        memory = _observe_kl(memory, settings, seen.step, seen.kl)
    return memory


def _observe_kl(memory: KlMemory, settings: KlSettings, step: int, kl: float) -> KlMemory:
    smooth = memory.smooth[-1] + SMOOTH * (kl - memory.smooth[-1]) if memory.smooth else kl
    most = math.log(settings.largest_change)
    low = settings.target is not None and smooth < 0.5 * settings.target
    return replace(
        memory,
        kls=(*memory.kls, kl)[-WINDOW:],
        ema=kl if memory.ema is None else 0.95 * memory.ema + 0.05 * kl,
        smooth=(*memory.smooth, smooth)[-(TREND + 1) :],
        low_since=(step if memory.low_since is None else memory.low_since) if low else None,
        wish=min(max(memory.wish + _wish(memory, settings, step, kl), -most), most),
    )


def _wish(memory: KlMemory, settings: KlSettings, step: int, kl: float) -> float:
    """Ziegler et al. 2019: each step multiplies by 1 + 0.1 × the relative error, clipped to ±0.2."""
    if settings.target is None or settings.target <= 0.0 or not math.isfinite(settings.target):
        return 0.0
    steps = 1 if memory.step is None else min(step - memory.step, settings.change_steps)
    error = min(max(kl / settings.target - 1.0, -0.2), 0.2)
    return steps * math.log1p(0.1 * error)


def span(values: Sequence[float]) -> Span | None:
    """None for fewer than four values."""
    if len(values) < 4:
        return None
    half = len(values) // 2
    mean = math.fsum(values) / len(values)
    spread = math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (len(values) - 1))
    rise = math.fsum(values[-half:]) / half - math.fsum(values[:half]) / half
    recent, latest = (math.fsum(last) / len(last) for last in (values[-RECENT:], values[-LATEST:]))
    return Span(mean=mean, recent=recent, latest=latest, spread=spread, rise=rise)


def changed(memory: KlMemory, step: int, value: float, trial: Trial | None) -> KlMemory:
    """After a decision to set ``value``: the windows begin anew."""
    return replace(
        memory,
        coefficient=value,
        previous=memory.coefficient,
        changed_step=step,
        wish=0.0,
        pulls=(),
        kls=(),
        rewards=(),
        trial=trial,
        low_since=None,
    )


def restarted(memory: KlMemory, step: int) -> KlMemory:
    """After a resume: baselines and optimiser are new, as after a change; a stop stays one."""
    return KlMemory(step=step, changed_step=step, stopped=memory.stopped)


def _finite(value: float | None) -> TypeGuard[float]:
    return value is not None and abs(value) <= LARGEST
