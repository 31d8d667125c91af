"""Judging for real: the steps after the persisted cursor, in the caller's transaction, under the run's lock.

Verdicts, alerts, transitions, memory and cursor are written together or not at all, so a process may die anywhere
and the next one goes on as if nothing had been. Ids are made from what happened, so even a step that is judged
twice records its changes once.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection

from rlvitals.contract.alert import Alert, AlertState, Severity, Transition
from rlvitals_monitor.alerts.judge import (
    Judgement,
    alert_id,
    judge_step,
    note_verdicts,
    order,
    transition_id,
    withdraw_all,
)
from rlvitals_monitor.alerts.memory import AttemptMemory, begin, dump, restore
from rlvitals_monitor.alerts.short import fit
from rlvitals_monitor.rules.rule import Rule, fill
from rlvitals_monitor.store import alerts as table
from rlvitals_monitor.store import evaluations
from rlvitals_monitor.store.evaluations import Subject
from rlvitals_monitor.store.series import read_steps
from rlvitals_monitor.store.steering import newest_attempt

STEPS_A_CALL = 500
"""Most steps judged in one transaction, so that a long backlog does not keep the run locked."""
CACHED_ATTEMPTS = 256


class Advanced(NamedTuple):
    """What one call did: how many steps it judged, and what changed by them."""

    steps: int
    transitions: tuple[Transition, ...]


class Cache:
    """Memories of attempts between calls, for the newest of each run: only what judges it changes its memory, so
    that the persisted cursor says whether one is current. The alerts of an older one are ended at its last step.
    """

    def __init__(self, limit: int = CACHED_ATTEMPTS) -> None:
        self._limit = limit
        self._kept: OrderedDict[int, tuple[int, AttemptMemory]] = OrderedDict()

    def take(self, attempt_number: int, step: int) -> AttemptMemory | None:
        """Removes and returns it: whoever changes it puts it back when all went well."""
        at, memory = self._kept.pop(attempt_number, (None, None))
        return memory if at == step else None

    def put(self, attempt_number: int, step: int, memory: AttemptMemory) -> None:
        self._kept[attempt_number] = (step, memory)
        while len(self._kept) > self._limit:
            self._kept.popitem(last=False)

    def forget(self, attempt_number: int) -> None:
        """After a transaction that failed, what is remembered here may never have been written."""
        self._kept.pop(attempt_number, None)


def advance(
    connection: Connection,
    attempt_number: int,
    rules: Sequence[Rule],
    now: datetime,
    *,
    cache: Cache | None = None,
    limit: int = STEPS_A_CALL,
) -> Advanced:
    """Judges at most ``limit`` new steps of one attempt and records what changed; the caller commits.

    None where another process judges this attempt. Where a newer attempt began, the open alerts of the older ones
    end. If the caller's transaction fails, it must call ``cache.forget(attempt_number)``.
    """
    if not evaluations.claim(connection, attempt_number):
        return Advanced(0, ())
    subject = evaluations.lock_subject(connection, attempt_number)
    if subject is None:
        return Advanced(0, ())
    ordered = order(fit(rules, subject.config))
    found: list[Transition] = []
    if newest_attempt(connection, subject.run) != attempt_number:
        cache = None
    else:
        for older in table.open_before(connection, subject.run, attempt_number):
            found += _supersede(connection, older, ordered, now, cache)
    steps = _judge(connection, subject, ordered, now, cache, limit, found)
    return Advanced(steps, tuple(found))


def _judge(
    connection: Connection,
    subject: Subject,
    rules: Sequence[Rule],
    now: datetime,
    cache: Cache | None,
    limit: int,
    found: list[Transition],
) -> int:
    step, memory = _remember(connection, subject, rules, cache)
    rows = read_steps(connection, subject.number, step, limit, now)
    for row in rows:
        for judgement in judge_step(rules, memory, row.step, row.time, row.values):
            found += _record(connection, subject, judgement, now)
    if rows:
        note_verdicts(rules, memory)
        evaluations.keep(connection, subject.number, rows[-1].step, dump(memory))
    if cache is not None and memory.window.observed:
        cache.put(subject.number, memory.window.step, memory)
    return len(rows)


def _remember(
    connection: Connection, subject: Subject, rules: Sequence[Rule], cache: Cache | None
) -> tuple[int | None, AttemptMemory]:
    step = evaluations.cursor(connection, subject.number)
    if step is None:
        return None, begin(rules, subject.config)
    memory = None if cache is None else cache.take(subject.number, step)
    if memory is None or not memory.fits(rules):
        kept = evaluations.find(connection, subject.number)
        memory = begin(rules, subject.config) if kept is None else restore(rules, subject.config, kept.memory)
    memory.window.config = subject.config
    return step, memory


def _supersede(
    connection: Connection, attempt_number: int, rules: Sequence[Rule], now: datetime, cache: Cache | None
) -> list[Transition]:
    if cache is not None:
        cache.forget(attempt_number)
    subject = evaluations.lock_subject(connection, attempt_number)
    kept = evaluations.find(connection, attempt_number)
    if subject is None or kept is None:
        return []
    memory = restore(rules, subject.config, kept.memory)
    found: list[Transition] = []
    for judgement in withdraw_all(memory, rules, "a newer attempt of the run began", kept.step, now):
        found += _record(connection, subject, judgement, now)
    evaluations.keep(connection, attempt_number, kept.step, dump(memory))
    return found


def _record(connection: Connection, subject: Subject, judgement: Judgement, now: datetime) -> list[Transition]:
    """Writes the alert and its transition; nothing where that very transition is there already."""
    alert = build_alert(subject.run, subject.attempt, judgement)
    before = table.find(connection, alert.id)
    alert = alert if before is None else _carry_on(before, alert, judgement)
    transition = Transition(
        id=transition_id(alert.id, judgement.change.after, judgement.step),
        alert=alert,
        before=judgement.change.before,
        after=judgement.change.after,
        step=judgement.step,
        at=min(judgement.time, now),
        reason=judgement.change.reason,
    )
    table.save(connection, subject.number, alert)
    return [transition] if table.add_transition(connection, transition) else []


def build_alert(run: str, attempt: str, judgement: Judgement) -> Alert:
    """The alert as this change makes it, without what earlier changes said."""
    name, _, severity = judgement.key.partition("/")
    rule, evaluation, after = judgement.rule, judgement.evaluation, judgement.change.after
    value, threshold, step = evaluation.value, evaluation.threshold, judgement.step
    fired = after is AlertState.FIRING
    resolved = after is AlertState.RESOLVED
    return Alert(
        id=alert_id(run, attempt, judgement.key, judgement.opened_step),
        run=run,
        attempt=attempt,
        rule=name,
        severity=Severity(severity),
        state=after,
        since_step=judgement.since_step,
        since_time=judgement.since_time,
        metric=evaluation.metric,
        value=value,
        threshold=threshold,
        measured=evaluation.measured,
        sign=evaluation.sign,
        summary=fill(rule.summary, value, threshold, step, evaluation.metric) if rule is not None else "",
        advice=rule.description if rule is not None else "",
        runbook=rule.runbook if rule is not None else "",
        fired_step=step if fired else None,
        fired_at=judgement.time if fired else None,
        resolved_step=step if resolved else None,
        resolved_at=judgement.time if resolved else None,
        proposal=judgement.proposal,
    )


def _carry_on(before: Alert, alert: Alert, judgement: Judgement) -> Alert:
    """An end keeps the numbers and words with which the alert fired; a name that acknowledged it always stays."""
    if judgement.change.after is AlertState.FIRING:
        return replace(alert, acknowledged_by=before.acknowledged_by)
    return replace(before, state=alert.state, resolved_step=alert.resolved_step, resolved_at=alert.resolved_at)
