"""A KL policy at work on a live run: each judged step is shown to it, and what it wants goes through the mailbox.

The decision is the function of the dry run (`kl_steering.decide`); what is remembered is written in the same
transaction as the command, under the run's lock, so that a step counts once whoever looks. A policy acts on the
newest step only: from those that came while nobody looked, or before it was chosen, it learns.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime

from sqlalchemy import Connection

from rlvitals.contract import codec
from rlvitals.contract.alert import Proposal
from rlvitals.contract.command import CommandKind, CommandState
from rlvitals.contract.view import CommandView
from rlvitals_monitor.control import mailbox
from rlvitals_monitor.control.bounds import Limits, users_value
from rlvitals_monitor.control.dry_run import observation
from rlvitals_monitor.control.kl_decision import (
    KlChoice,
    KlDecision,
    KlSettings,
    KlWhy,
    Observation,
    OpenAlert,
    holding,
)
from rlvitals_monitor.control.kl_memory import KlMemory, restarted
from rlvitals_monitor.control.kl_policies import POLICIES, KlPolicy
from rlvitals_monitor.control.kl_steering import LANDS_WITHIN, decide, watch
from rlvitals_monitor.control.policy import Cause, Policies
from rlvitals_monitor.control.situation import Refusal
from rlvitals_monitor.store import commands, evaluations, steering
from rlvitals_monitor.store.evaluations import Subject
from rlvitals_monitor.store.series import StepRow, read_steps
from rlvitals_monitor.store.steering import Choice, Firing, Kept, Progress

STEPS_A_CALL = 500
LEARNS_FROM = 250
"""Steps before it was chosen that a policy learns from, so that it knows the course that the run is on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Steered:
    """What one call did: how many steps the policy saw, its last decision, and the run where a command began."""

    steps: int
    decision: KlDecision | None = None
    commanded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """``chosen_at`` names the choice under which it was learned: whoever chooses anew has looked."""

    memory: KlMemory = field(default_factory=KlMemory)
    chosen_at: datetime | None = None

    def under(self, choice: Choice) -> KlMemory:
        if self.chosen_at == choice.changed_at:
            return self.memory
        return replace(self.memory, stopped="", wish=0.0, low_since=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wheel:
    """All that stays the same over the steps of one call."""

    subject: Subject
    choice: Choice
    policy: KlPolicy
    settings: KlSettings
    progress: Progress
    policies: Policies
    limits: Limits
    now: datetime


def advance(conn: Connection, attempt_number: int, policies: Policies, limits: Limits, now: datetime) -> Steered:
    """Shows a run's policy at most `STEPS_A_CALL` new steps of its newest attempt; the caller commits.

    Nothing happens where none is chosen. What the policy wants becomes a command as any rule's proposal does:
    observed, proposed, or on its way; a refusal is audited once, and the policy asks again.
    """
    subject = evaluations.lock_subject(conn, attempt_number)
    progress = None if subject is None else steering.progress(conn, attempt_number)
    if subject is None or progress is None:
        return Steered(steps=0)
    choice = steering.choice_for(conn, subject.run, progress.project)
    policy = None if choice is None else POLICIES.get(choice.kl_policy)
    if choice is None or policy is None:
        return Steered(steps=0)
    kept = steering.find(conn, attempt_number)
    try:
        settings = settings_of(subject, choice, limits)
    except ValueError as error:
        return _not_set(conn, subject, choice, kept, progress, str(error))
    wheel = _Wheel(
        subject=subject,
        choice=choice,
        policy=policy,
        settings=settings,
        progress=progress,
        policies=policies,
        limits=limits,
        now=now,
    )
    return _drive(conn, wheel, kept)


def settings_of(subject: Subject, choice: Choice, limits: Limits) -> KlSettings:
    """The run's own coefficient and target under what was chosen. Raises ValueError for what goes too far."""
    chosen = codec.decode(KlChoice, choice.settings, "settings")
    return KlSettings.of(subject.config, limits).under(chosen)


def _drive(conn: Connection, wheel: _Wheel, kept: Kept | None) -> Steered:
    number, judged = wheel.subject.number, wheel.progress.judged
    memory, after = _remember(conn, wheel, kept)
    rows = [row for row in read_steps(conn, number, after, STEPS_A_CALL, wheel.now) if row.step <= judged]
    opened = steering.firing(conn, number, after)
    told = all("kl.coef" in row.values for row in rows)
    coefficient = None if told else _in_force(conn, wheel)
    decision, commanded = None, False
    for row in rows:
        seen = observation(row.step, row.values, row.values.get("kl.coef", coefficient), _alerts(opened, row))
        decision, memory, made = _see(conn, wheel, memory, seen)
        commanded = commanded or made
    if decision is not None:
        known = Remembered(memory=memory, chosen_at=wheel.choice.changed_at)
        said = codec.encode(decision)
        steering.keep(conn, number, wheel.policy.name, rows[-1].step, codec.encode(known), said)
    return Steered(steps=len(rows), decision=decision, commanded=commanded)


def _see(
    conn: Connection, wheel: _Wheel, memory: KlMemory, seen: Observation
) -> tuple[KlDecision, KlMemory, bool]:
    """One step. Where its wish is refused, the policy remembers the step and not the wish."""
    hold, learned = watch(wheel.policy, wheel.settings, memory, seen)
    if hold is not None:
        return hold, learned, False
    if seen.step < wheel.progress.judged:
        text = f"step {seen.step} is past: step {wheel.progress.judged} was there already"
        return KlDecision(step=seen.step, why=KlWhy.PAST, reason=text), learned, False
    decision, decided = decide(wheel.policy, wheel.settings, memory, seen)
    if decision.value is None:
        return decision, decided, False
    answer = _ask(conn, wheel, memory, decision)
    if isinstance(answer, Refusal):
        text = f"{decision.why.value} to {decision.value:g} was refused, {answer}"
        return KlDecision(step=seen.step, why=KlWhy.REFUSED, reason=text), learned, False
    return decision, decided, True


def _ask(conn: Connection, wheel: _Wheel, memory: KlMemory, decision: KlDecision) -> CommandView | Refusal:
    """The id is made from what was asked for last, so that asking again is the same proposal."""
    name, subject = wheel.policy.name, wheel.subject
    since = "the start" if memory.changed_step is None else str(memory.changed_step)
    chosen = wheel.choice.changed_at.isoformat()
    cause = Cause(
        source="\x00".join(("kl policy", name, chosen, subject.run, subject.attempt, since, decision.why.value)),
        who=f"policy:{name}",
        why=decision.reason,
        at=wheel.progress.progress_at or wheel.now,
    )
    proposal = Proposal(kind=CommandKind.SET_KL_COEF, argument=decision.value)
    # The policy rested for as long since it decided; the mailbox counts from when the trainer followed.
    rest = max(0, wheel.limits.cool_down_steps - LANDS_WITHIN)
    limits = replace(wheel.limits, cool_down_steps=rest)
    return mailbox.suggest(conn, subject.run, proposal, cause, decision.step, wheel.policies, wheel.now, limits)


def _remember(conn: Connection, wheel: _Wheel, kept: Kept | None) -> tuple[KlMemory, int | None]:
    """What is known before the next step, and the last one that it is known of.

    A new attempt carries on from the one before as after a resume. A policy that was just chosen looks back.
    """
    name, judged = wheel.policy.name, wheel.progress.judged
    if kept is not None and kept.kl_policy == name:
        return _remembered(kept).under(wheel.choice), kept.step
    if kept is not None:
        return KlMemory(), judged - LEARNS_FROM
    earlier = steering.find_before(conn, wheel.subject.number)
    if earlier is None or earlier.kl_policy != name:
        return KlMemory(), judged - LEARNS_FROM
    first = read_steps(conn, wheel.subject.number, None, 1, wheel.now)
    began = first[0].step - 1 if first else judged
    return restarted(_remembered(earlier).under(wheel.choice), began), None


def _remembered(kept: Kept) -> Remembered:
    return codec.decode(Remembered, kept.memory, "steering.memory")


def _in_force(conn: Connection, wheel: _Wheel) -> float | None:
    """Where a run does not report ``kl.coef``: as the last command left it, else the user's own."""
    past = commands.history(conn, wheel.subject.run, CommandKind.SET_KL_COEF)
    applied = [c.after for c in past if c.state is CommandState.APPLIED and c.after is not None]
    return applied[-1] if applied else users_value(CommandKind.SET_KL_COEF, wheel.subject.config)


def _alerts(opened: Iterable[Firing], row: StepRow) -> frozenset[str]:
    """Those that fired at the step, as `dry_run.OpenAlerts` has them."""
    now = (
        OpenAlert(name=alert.rule, since_step=alert.since_step, acknowledged=alert.acknowledged)
        for alert in opened
        if alert.fired_step <= row.step and (alert.resolved_step is None or row.step < alert.resolved_step)
    )
    return holding(now, row.step)


def _not_set(
    conn: Connection, subject: Subject, choice: Choice, kept: Kept | None, progress: Progress, why: str
) -> Steered:
    """The operator's limits leave a policy no room: it is told, and nothing is done."""
    same = kept is not None and kept.kl_policy == choice.kl_policy
    memory = kept.memory if kept is not None and same else codec.encode(Remembered())
    decision = KlDecision(step=progress.judged, why=KlWhy.NO_BASELINE, reason=f"no change is allowed: {why}")
    steering.keep(conn, subject.number, choice.kl_policy, progress.judged, memory, codec.encode(decision))
    return Steered(steps=0, decision=decision)
