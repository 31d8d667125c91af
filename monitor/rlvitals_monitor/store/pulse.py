"""How a run is: its state, its light, and the reason in words. Pure; two clocks, since a long step is no crash.

``seen`` moves with every word of the process, ``progress`` only with a new step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median

from rlvitals.contract.alert import Severity
from rlvitals.contract.report import RECEIPT_HEARTBEAT_S, Phase
from rlvitals.contract.view import Light, RunState
from rlvitals_monitor.store import handshake
from rlvitals_monitor.store.handshake import Handshake

LATE_AFTER = timedelta(seconds=4 * RECEIPT_HEARTBEAT_S)
STALLED_AFTER = timedelta(minutes=10)
"""No word at all for so long."""
LATE_STEP_AFTER, STALLED_STEP_AFTER = timedelta(minutes=5), timedelta(minutes=30)
"""No new step of a process that is alive, for so long at least: some loops save and evaluate without saying so."""
LATE_STEPS, STALLED_STEPS = 4, 12
"""A step that takes this many times the usual is late, stalled; never sooner than the times above."""
LATE_GAPS, STALLED_GAPS = 1.5, 4.5
"""And never sooner than this many times the second longest of the last gaps: with an asynchronous generator steps
come in bursts, with a long wait between them. Not the longest, which may have been a pause."""
PATIENT_PHASES = frozenset({Phase.EVAL.value, Phase.CHECKPOINT.value, Phase.STARTING.value})
PATIENCE = 12
"""Evaluations, checkpoints and the start may take this many times longer."""
FIRST_STEP_WITHIN = {
    Phase.STARTING.value: timedelta(minutes=60),
    Phase.ROLLOUT.value: timedelta(minutes=60),
    Phase.EVAL.value: timedelta(minutes=100),
    Phase.CHECKPOINT.value: timedelta(minutes=60),
}
"""How long a connected trainer may be without a first step. Loading hundreds of GB over a network and capturing an
engine's graphs take 20 minutes, a first rollout of long answers twice that, and an evaluation before the training
more; trainers that tell no phases do all of it while ``starting``."""
FIRST_STEP_ELSE = timedelta(minutes=10)
"""In a phase that comes after all this, as an update does."""
SILENT_TIMES = 3
"""After so many times that long, or as long as the first step took, it is more than late."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signs:
    """What is known of a run's newest attempt.

    ``began_at`` is its start, ``progress_at`` when its last step came, ``steps`` how many there are at least, and
    ``step_s`` the usual time of one; ``gap_s`` is the second longest of the last ones. ``firing`` are the
    severities of what fires.
    """

    phase: str
    began_at: datetime
    seen_at: datetime
    progress_at: datetime | None
    step_s: float | None
    gap_s: float = 0.0
    steps: int = 0
    firing: Sequence[Severity] = ()
    worst_rule: str = ""
    stop_applied: bool = False
    hooks: Handshake = field(default_factory=lambda: handshake.read(()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """What is known of a run's newest attempt, of which ``last_step`` is None before the first."""

    run: str
    attempt: str
    attempt_number: int
    last_step: int | None
    signs: Signs


@dataclass(frozen=True, slots=True, kw_only=True)
class Pulse:
    state: RunState
    light: Light
    reason: str


def take(signs: Signs, now: datetime) -> Pulse:
    """State by phase and clocks; the light is the worse of state, hooks and firing alerts."""
    state, reason = _state(signs, now)
    light = _LIGHTS[state]
    for other, why in (_sight(signs, state), _ended(signs, state), _alarm(signs)):
        if _RANK.index(other) > _RANK.index(light):
            light, reason = other, why
    return Pulse(state=state, light=light, reason=reason)


def first_step_is_late(signs: Signs, now: datetime) -> bool:
    """Whether a trainer that is connected should have sent its first step by now."""
    within = FIRST_STEP_WITHIN.get(signs.phase, FIRST_STEP_ELSE)
    return signs.progress_at is None and now - signs.began_at > within


def is_over(signs: Signs) -> bool:
    return signs.phase in (Phase.FINISHED.value, Phase.FAILED.value)


def step_seconds(times_s: Sequence[float]) -> float | None:
    """The usual time of a step from step times in rising order: the median gap, or None for fewer than two."""
    gaps = _gaps(times_s)
    return median(gaps) if gaps else None


def long_gap_seconds(times_s: Sequence[float]) -> float:
    """The second longest gap between steps, 0 where there are not two."""
    gaps = sorted(_gaps(times_s))
    return gaps[-2] if len(gaps) > 1 else 0.0


def _gaps(times_s: Sequence[float]) -> list[float]:
    return [b - a for a, b in pairwise(times_s) if b > a]


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
            (RunState.STOPPED, "stopped by a command")
            if signs.stop_applied
            else (RunState.FINISHED, "finished" if signs.steps else "finished without a step")
        )
    silence = now - signs.seen_at
    if silence > STALLED_AFTER:
        return RunState.STALLED, f"no word from the trainer for {span(silence)}"
    if silence > LATE_AFTER:
        return RunState.LATE, f"no word from the trainer for {span(silence)}"
    if signs.phase == Phase.PAUSED.value:
        return RunState.PAUSED, "paused by a command"
    return _progress(signs, now)


def _progress(signs: Signs, now: datetime) -> tuple[RunState, str]:
    if signs.progress_at is None:
        return _first_step(signs, now)
    waited = now - signs.progress_at
    patience = PATIENCE if signs.phase in PATIENT_PHASES else 1
    late, stalled = patience * LATE_STEP_AFTER, patience * STALLED_STEP_AFTER
    if signs.step_s is not None:
        usual, gap = timedelta(seconds=signs.step_s), timedelta(seconds=signs.gap_s)
        late = max(late, LATE_STEPS * usual, LATE_GAPS * gap)
        stalled = max(stalled, STALLED_STEPS * usual, STALLED_GAPS * gap)
    else:  # the second step takes no longer than the start and the first one
        first = signs.progress_at - signs.began_at
        late, stalled = max(late, first), max(stalled, SILENT_TIMES * first)
    for state, least in ((RunState.STALLED, stalled), (RunState.LATE, late)):
        if waited > least:
            return state, f"alive, but no new step for {span(waited)} (phase {signs.phase})"
    return RunState.RUNNING, _quiet(signs)


def _first_step(signs: Signs, now: datetime) -> tuple[RunState, str]:
    waited = now - signs.began_at
    if not first_step_is_late(signs, now):
        return RunState.CREATED, "waiting for the first step"
    silent = waited > SILENT_TIMES * FIRST_STEP_WITHIN.get(signs.phase, FIRST_STEP_ELSE)
    why = handshake.silence(signs.hooks)
    reason = f"connected, 0 steps in {span(waited)} (phase {signs.phase}): {why}. {_DOCTOR}"
    return RunState.STALLED if silent else RunState.LATE, reason


_DOCTOR = "`rlvitals doctor` in the job's environment tells more"


def _quiet(signs: Signs) -> str:
    """A lamp is green only as far as something sees."""
    known = signs.steps >= handshake.BLIND_STEPS and signs.hooks.unseen
    return f"all quiet, as far as {signs.hooks.count()}: {signs.hooks.worst()}" if known else "all quiet"


def _sight(signs: Signs, state: RunState) -> tuple[Light, str]:
    """What the hooks say by themselves, whatever the clocks do; not once the trainer is gone."""
    hooks = signs.hooks
    if state is RunState.CREATED and hooks.failing:
        return Light.AMBER, f"no step yet, and {hooks.worst()}"
    if state is RunState.RUNNING and hooks.blind and signs.steps >= handshake.BLIND_STEPS:
        return Light.AMBER, f"steps arrive, but not one hook sees: {hooks.worst()}. {_DOCTOR}"
    if state is RunState.FINISHED and hooks.blind and not signs.steps:
        return Light.AMBER, f"finished, but no step was seen: {hooks.worst()}"
    return Light.GREY, ""


def _ended(signs: Signs, state: RunState) -> tuple[Light, str]:
    """A verdict on what is over: only where there were steps to judge and hooks that saw."""
    if state is not RunState.FINISHED or not signs.steps or signs.hooks.blind:
        return Light.GREY, ""
    return Light.GREEN, "finished; no alert was firing at its end"


def _alarm(signs: Signs) -> tuple[Light, str]:
    serious = [s for s in signs.firing if s is not Severity.INFO]
    if not serious:
        return Light.GREY, ""
    worst = max(serious, key=lambda severity: severity.rank)
    count = f"{len(signs.firing)} alert{'s' if len(signs.firing) > 1 else ''} firing"
    return (
        Light.RED if worst is Severity.CRITICAL else Light.AMBER
    ), f"{count}: {signs.worst_rule} is {worst.value}"


def span(length: timedelta) -> str:
    """In the unit that people would choose: from two minutes on in minutes, from two hours on in hours."""
    seconds = round(length.total_seconds())
    if seconds < 120:
        return f"{seconds} s"
    return f"{seconds // 60} min" if seconds < 7200 else f"{seconds // 3600} h"
