"""A trainer that stopped talking or stepping: late, stalled, lost, as alerts that end by themselves. Pure.

An alert begins by what we heard ourselves (``listening_since``): after a restart, an outage or a clock that
jumped, a run's last word is old because nobody listened. It ends by the run's own signs, so that two workers, one
of which began just now, never pull it to and fro.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import IntEnum

from rlvitals.contract.alert import Alert, AlertState, Severity, Transition
from rlvitals.contract.report import RECEIPT_HEARTBEAT_S, Phase
from rlvitals.contract.view import RunState
from rlvitals_monitor.alerts.shared_silence import SharedSilence
from rlvitals_monitor.store import pulse
from rlvitals_monitor.store.numbers import to_micros
from rlvitals_monitor.store.pulse import Heard, Signs

LOST_AFTER = timedelta(hours=1)
"""No word at all for so long."""
LATE_FOR = timedelta(minutes=2)
"""How long a run must have been late: a checkpoint over a network makes many late for a moment."""
SKEW = timedelta(seconds=5)
"""How far ahead of the clock a last word may be, with several collectors; beyond it the clock was set back."""
SPEAKS = timedelta(seconds=2 * RECEIPT_HEARTBEAT_S)
"""A client that was heard so long after its last step speaks between its steps."""


BUSY_PHASES = pulse.PATIENT_PHASES | {Phase.PAUSED.value}
"""Those that take their time."""
SILENCE, STEPLESS = "run.silence_s", "run.stepless_s"
"""What an alert says it measured: seconds without a word, without a step."""


class Stage(IntEnum):
    WELL = 0
    LATE = 1
    STALLED = 2
    LOST = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class LivenessRule:
    name: str
    stage: Stage
    severity: Severity
    advice: str


RULES = (
    LivenessRule(
        name="rlvitals/late",
        stage=Stage.LATE,
        severity=Severity.INFO,
        advice="Nothing yet: a long step, a checkpoint or the network does this. It ends by itself.",
    ),
    LivenessRule(
        name="rlvitals/stalled",
        stage=Stage.STALLED,
        severity=Severity.WARNING,
        advice="Look at the job: does the process live, do the GPUs compute, does one rank wait for another, "
        "is the disk full? `rlvitals doctor` in its environment tells what the client sees.",
    ),
    LivenessRule(
        name="rlvitals/lost",
        stage=Stage.LOST,
        severity=Severity.CRITICAL,
        advice="The process is gone or cut off. Look at the job's last lines and at its machine; a killed one "
        "goes on from its last checkpoint as a new attempt. Steps that it still wrote follow by `rlvitals sync`.",
    ),
)
NAMES = frozenset(rule.name for rule in RULES)


def judge(
    heard: Heard,
    firing: Iterable[Alert],
    now: datetime,
    listening_since: datetime,
    busy_until: datetime | None = None,
    shared: SharedSilence | None = None,
) -> list[Transition]:
    """What changes now, given the run's open alerts. The same question always has the same answer.

    ``busy_until`` is the last word of a phase before this one that took its time: the clock of steps begins anew.
    Runs that fell silent together are called so together, with what they share as the first thing to look at.
    """
    if now < heard.signs.seen_at - SKEW:
        return []
    known = [alert for alert in firing if alert.rule in NAMES]
    open_rules = {alert.rule for alert in known if alert.attempt == heard.attempt}
    shared = shared if shared is not None and shared.holds(heard.signs.seen_at) else None
    felt = heard.signs if shared is None else replace(heard.signs, seen_at=shared.last)
    reached = _lasting(_graced(felt, listening_since, busy_until), now, _patience(heard.signs))
    ended = [_end(alert, heard, now) for alert in known if _is_over(alert, heard, now)]
    begun = [rule for rule in RULES if rule.stage <= reached and rule.name not in open_rules]
    return [*ended, *(_begin(rule, heard, now, shared) for rule in begun)]


def stage(signs: Signs, now: datetime, patience: timedelta) -> Stage:
    """By both clocks, the worse of them; `Stage.WELL` for a run that is over or paused and heard."""
    if pulse.is_over(signs):
        return Stage.WELL
    return max(_by_words(signs, now, patience), _by_steps(signs, now))


def _graced(signs: Signs, listening_since: datetime, busy_until: datetime | None) -> Signs:
    """As if the run had shown all its signs of life when we began to listen."""
    began, progress = signs.began_at, signs.progress_at
    if progress is None:
        began = max(began, listening_since)
    else:
        progress = max(progress, listening_since, busy_until or progress)
    return replace(signs, began_at=began, progress_at=progress, seen_at=max(signs.seen_at, listening_since))


def _lasting(signs: Signs, now: datetime, patience: timedelta) -> Stage:
    """Late only when it lasts."""
    found = stage(signs, now, patience)
    return found if found is not Stage.LATE else min(found, stage(signs, now - LATE_FOR, patience))


def _by_words(signs: Signs, now: datetime, patience: timedelta) -> Stage:
    silence = now - signs.seen_at
    limits = ((Stage.LOST, LOST_AFTER), (Stage.STALLED, pulse.STALLED_AFTER), (Stage.LATE, pulse.LATE_AFTER))
    return next((found for found, limit in limits if silence > max(limit, patience)), Stage.WELL)


def _patience(signs: Signs) -> timedelta:
    """Of a client that may be one that speaks only with its steps: as long as these may take."""
    if signs.seen_at - (signs.progress_at or signs.began_at) > SPEAKS:
        return timedelta(0)
    if signs.progress_at is None or signs.step_s is None:
        return pulse.FIRST_STEP_WITHIN.get(signs.phase, pulse.STALLED_STEP_AFTER)
    usual = max(pulse.STALLED_STEPS * signs.step_s, pulse.STALLED_GAPS * signs.gap_s)
    return timedelta(seconds=usual)


def _by_steps(signs: Signs, now: datetime) -> Stage:
    state = pulse.take(replace(signs, seen_at=now), now).state
    return {RunState.LATE: Stage.LATE, RunState.STALLED: Stage.STALLED}.get(state, Stage.WELL)


def _is_over(alert: Alert, heard: Heard, now: datetime) -> bool:
    rule = next(rule for rule in RULES if rule.name == alert.rule)
    return alert.attempt != heard.attempt or stage(heard.signs, now, _patience(heard.signs)) < rule.stage


def _end(alert: Alert, heard: Heard, now: datetime) -> Transition:
    step = max(alert.since_step, 0 if heard.last_step is None else heard.last_step)
    if alert.attempt != heard.attempt:
        step, reason = alert.since_step, "a newer attempt of the run began"
    elif pulse.is_over(heard.signs):
        reason = f"the trainer {heard.signs.phase}"
    else:
        reason = "the trainer is heard again" if alert.metric == SILENCE else "the trainer steps again"
    ended = replace(alert, state=AlertState.RESOLVED, resolved_step=step, resolved_at=now)
    return _transition(ended, AlertState.FIRING, step, now, reason)


def _begin(rule: LivenessRule, heard: Heard, now: datetime, shared: SharedSilence | None) -> Transition:
    signs = heard.signs
    silent = _by_words(signs, now, _patience(signs)) >= rule.stage
    mark = signs.seen_at if silent else signs.progress_at or signs.began_at
    step = 0 if heard.last_step is None else heard.last_step
    alert = Alert(
        id=_digest(heard.run, heard.attempt, rule.name, str(to_micros(mark)), str(to_micros(now))),
        run=heard.run,
        attempt=heard.attempt,
        rule=rule.name,
        severity=rule.severity,
        state=AlertState.FIRING,
        since_step=step,
        since_time=mark,
        metric=SILENCE if silent else STEPLESS,
        value=(now - mark).total_seconds(),
        summary=_words(heard, now, silent=silent),
        advice=shared.advice if silent and shared is not None else rule.advice,
        fired_step=step,
        fired_at=now,
    )
    return _transition(alert, AlertState.INACTIVE, step, now, alert.summary)


def _words(heard: Heard, now: datetime, *, silent: bool) -> str:
    """Why, in the words of the run's page, and how far it had come."""
    signs = heard.signs
    if silent:
        why = f"no word from the trainer for {pulse.span(now - signs.seen_at)}"
    else:
        why = pulse.take(replace(signs, seen_at=now, firing=()), now).reason
    last = "it has made no step" if heard.last_step is None else f"its last step was {heard.last_step}"
    return f"{why[:1].upper()}{why[1:]}; {last}."


def _transition(alert: Alert, before: AlertState, step: int, now: datetime, reason: str) -> Transition:
    return Transition(
        id=_digest(alert.id, alert.state.value),
        alert=alert,
        before=before,
        after=alert.state,
        step=step,
        at=now,
        reason=reason,
    )


def _digest(*parts: str) -> str:
    return hashlib.sha256("\x00".join(("liveness", *parts)).encode()).hexdigest()[:32]
