"""How a run is: its state, its light, and the reason in words. Pure; two clocks, since a long step is no crash.

``seen`` moves with every word of the process, ``progress`` only with a new step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median

from rlvitals.contract.alert import Severity
from rlvitals.contract.report import RECEIPT_HEARTBEAT_S, Phase
from rlvitals.contract.view import Light, RunState

LATE_AFTER = timedelta(seconds=4 * RECEIPT_HEARTBEAT_S)
STALLED_AFTER = timedelta(minutes=10)
LATE_STEPS, STALLED_STEPS = 4, 12
"""A step that takes this many times the usual is late, stalled; never sooner than the times above."""
PATIENT_PHASES = frozenset({Phase.EVAL.value, Phase.CHECKPOINT.value, Phase.STARTING.value})
PATIENCE = 6
"""Evaluations, checkpoints and the start may take this many times longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signs:
    """What is known of a run. ``step_s`` is the usual time of a step; ``firing`` maps severity to how many."""

    phase: str
    created_at: datetime
    seen_at: datetime
    progress_at: datetime | None
    step_s: float | None
    firing: Sequence[Severity] = ()
    worst_rule: str = ""
    stop_applied: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Pulse:
    state: RunState
    light: Light
    reason: str


def take(signs: Signs, now: datetime) -> Pulse:
    """State by phase and clocks; the light is the worse of state and firing alerts."""
    state, reason = _state(signs, now)
    light = _LIGHTS[state]
    alarm, alarm_reason = _alarm(signs)
    if _RANK.index(alarm) > _RANK.index(light):
        return Pulse(state=state, light=alarm, reason=alarm_reason)
    return Pulse(state=state, light=light, reason=reason)


def step_seconds(times_s: Sequence[float]) -> float | None:
    """The usual time of a step from step times in rising order: the median gap, or None for fewer than two."""
    gaps = [b - a for a, b in pairwise(times_s) if b > a]
    return median(gaps) if gaps else None


_RANK = (Light.GREY, Light.GREEN, Light.AMBER, Light.RED)
_LIGHTS = {
    RunState.CREATED: Light.GREY,
    RunState.RUNNING: Light.GREEN,
    RunState.LATE: Light.AMBER,
    RunState.STALLED: Light.RED,
    RunState.PAUSED: Light.AMBER,
    RunState.FINISHED: Light.GREY,
    RunState.STOPPED: Light.GREY,
    RunState.FAILED: Light.RED,
}


def _state(signs: Signs, now: datetime) -> tuple[RunState, str]:
    if signs.phase == Phase.FAILED.value:
        return RunState.FAILED, "the trainer ended with an error"
    if signs.phase == Phase.FINISHED.value:
        return (
            (RunState.STOPPED, "stopped by a command") if signs.stop_applied else (RunState.FINISHED, "finished")
        )
    silence = now - signs.seen_at
    if silence > STALLED_AFTER:
        return RunState.STALLED, f"no word from the trainer for {_span(silence)}"
    if silence > LATE_AFTER:
        return RunState.LATE, f"no word from the trainer for {_span(silence)}"
    if signs.phase == Phase.PAUSED.value:
        return RunState.PAUSED, "paused by a command"
    return _progress(signs, now)


def _progress(signs: Signs, now: datetime) -> tuple[RunState, str]:
    waited = now - (signs.progress_at or signs.created_at)
    patience = PATIENCE if signs.phase in PATIENT_PHASES else 1
    usual = timedelta(seconds=signs.step_s or 0.0)
    if waited > patience * max(STALLED_AFTER, STALLED_STEPS * usual):
        return RunState.STALLED, f"alive, but no new step for {_span(waited)} (phase {signs.phase})"
    if signs.progress_at is None:
        return RunState.CREATED, "waiting for the first step"
    if waited > patience * max(LATE_AFTER, LATE_STEPS * usual):
        return RunState.LATE, f"alive, but no new step for {_span(waited)} (phase {signs.phase})"
    return RunState.RUNNING, "all quiet"


def _alarm(signs: Signs) -> tuple[Light, str]:
    serious = [s for s in signs.firing if s is not Severity.INFO]
    if not serious:
        return Light.GREY, ""
    worst = max(serious, key=lambda severity: severity.rank)
    count = f"{len(serious)} alert{'s' if len(serious) > 1 else ''} firing"
    return (
        Light.RED if worst is Severity.CRITICAL else Light.AMBER
    ), f"{count}: {signs.worst_rule} is {worst.value}"


def _span(length: timedelta) -> str:
    seconds = round(length.total_seconds())
    if seconds < 120:
        return f"{seconds} s"
    return f"{seconds // 60} min" if seconds < 7200 else f"{seconds // 3600} h"
