"""One step of one attempt, all rules: verdicts, new standings, and what changed. Pure but for the memory given.

The live engine, back-tests and rule tests all come through here.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from rlvitals.contract.alert import AlertState, Proposal, Truth
from rlvitals.contract.command import ARGUMENT_KINDS
from rlvitals_monitor.alerts.memory import AttemptMemory, Verdict
from rlvitals_monitor.alerts.shapes import Shapes, Twins
from rlvitals_monitor.alerts.state import INACTIVE, OVER, Change, Standing, advance, withdraw
from rlvitals_monitor.rules.evaluate import Evaluation, evaluate_measured, learn, read
from rlvitals_monitor.rules.rule import Rule

log = logging.getLogger(__name__)

WITHDRAWN = Evaluation(Truth.UNKNOWN, "not judged")


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """One change of one rule's alert at one step. ``rule`` is None where the rule is gone."""

    key: str
    rule: Rule | None
    change: Change
    opened_step: int
    since_step: int
    since_time: datetime
    step: int
    time: datetime
    evaluation: Evaluation
    proposal: Proposal | None = None


def judge_step(
    rules: Sequence[Rule], memory: AttemptMemory, step: int, time: datetime, values: Mapping[str, float]
) -> list[Judgement]:
    """Moves ``memory`` past one step, which must be later than the last. ``rules`` are in `order`."""
    derived = memory.components.derive(values)
    memory.window.push(step, time, {**derived, **values} if derived else values)
    found = list(_withdraw_orphans(memory, step, time)) if memory.orphans else []
    shapes = _shapes(rules, memory)
    shape, is_new = shapes.of(memory.window.values)
    if is_new:
        memory.evaluations.update(shape.absent)
    for place in shapes.places(shape):
        if _judge_alert(shapes.twins[place], shape.absent, memory, step, time, found):
            shapes.awake.add(place)
        else:
            shapes.awake.discard(place)
    return [_with_proposal(_named(judgement, memory), memory) for judgement in found] if found else found


def order(rules: Sequence[Rule]) -> tuple[Rule, ...]:
    """By alert, the strongest first: it decides whether its twins may begin."""
    return tuple(sorted(rules, key=lambda rule: (rule.alert, -rule.severity.rank)))


def note_verdicts(rules: Sequence[Rule], memory: AttemptMemory) -> None:
    """Keeps what people see of each rule; once a batch of steps is enough."""
    for rule in rules:
        evaluation = memory.evaluations.get(rule.key)
        if evaluation is not None:
            memory.verdicts[rule.key] = _verdict(rule, memory, evaluation)


def withdraw_all(
    memory: AttemptMemory, rules: Sequence[Rule], reason: str, step: int, at: datetime
) -> list[Judgement]:
    """Ends every open alert of an attempt that is over because a newer one began.

    None of them is opened again: a second trainer that reports to the same run goes on after it was superseded,
    and would tell of each anew whenever the newer one moves.
    """
    known = {rule.key: rule for rule in rules}
    found: list[Judgement] = []
    for key, standing in {**memory.standings, **memory.orphans}.items():
        after, change = withdraw(standing, reason)
        memory.standings[key] = after if change is None else OVER
        if change is not None:
            found.append(_judgement(key, known.get(key), change, standing, step, at, WITHDRAWN))
    memory.orphans.clear()
    return found


def alert_id(run: str, attempt: str, key: str, opened_step: int) -> str:
    """The same alert has the same id, whoever judges it and however often."""
    return _digest(run, attempt, key, str(opened_step))


def transition_id(alert: str, after: AlertState, step: int) -> str:
    return _digest(alert, after.value, str(step))


def _digest(*parts: str) -> str:
    return hashlib.sha256("\x00".join(parts).encode()).hexdigest()[:32]


def _shapes(rules: Sequence[Rule], memory: AttemptMemory) -> Shapes:
    if memory.shapes is None or memory.shapes.rules != tuple(rules):
        memory.shapes = Shapes(tuple(rules))
        memory.shapes.awake = {
            place
            for place, twins in enumerate(memory.shapes.twins)
            if any(memory.rules[rule.key].open for rule in twins)
        }
    return memory.shapes


def _judge_alert(
    twins: Twins,
    absent: Mapping[str, Evaluation],
    memory: AttemptMemory,
    step: int,
    time: datetime,
    found: list[Judgement],
) -> bool:
    """Adds what changed to ``found``; returns whether an alert of this name is open now."""
    inhibited = is_open = False
    for rule in twins:
        key = rule.key
        evaluation = memory.evaluations[key] = absent.get(key) or _evaluate(rule, memory)
        before = memory.standings.get(key, INACTIVE)
        if before is INACTIVE and evaluation.truth is not Truth.ACTIVE:
            continue
        held_back = inhibited or bool(rule.inhibited_by and _firing(memory).intersection(rule.inhibited_by))
        after, change = advance(before, evaluation, rule, step, time, inhibited=held_back)
        if after is not before:
            memory.standings[key] = after
        if change is not None:
            if change.after is AlertState.RESOLVED:
                memory.rules[key].recent.clear()
            named = after if after.is_open else before
            found.append(_judgement(key, rule, change, named, step, time, evaluation))
        is_open = is_open or after.is_open
        inhibited = inhibited or after.state is AlertState.FIRING or after.over
    for rule in twins:
        kept = memory.rules[rule.key]
        kept.open = is_open
        if rule.learns:
            learn(rule, memory.window, kept, memory.evaluations[rule.key])
    return is_open


def _evaluate(rule: Rule, memory: AttemptMemory) -> Evaluation:
    try:
        return evaluate_measured(rule, memory.window, memory.rules[rule.key])
    except Exception as error:  # a fault in one rule must not silence the others
        log.exception("rule %s failed at step %s", rule.key, memory.window.step)
        return Evaluation(Truth.UNKNOWN, f"the rule failed: {type(error).__name__}: {error}")


def _withdraw_orphans(memory: AttemptMemory, step: int, time: datetime) -> Iterator[Judgement]:
    for key, standing in memory.orphans.items():
        _, change = withdraw(standing, "the rule was removed")
        if change is not None:
            yield _judgement(key, None, change, standing, step, time, WITHDRAWN)
    memory.orphans.clear()


def _judgement(
    key: str,
    rule: Rule | None,
    change: Change,
    standing: Standing,
    step: int,
    time: datetime,
    evaluation: Evaluation,
) -> Judgement:
    return Judgement(
        key=key,
        rule=rule,
        change=change,
        opened_step=standing.opened_step,
        since_step=standing.since_step,
        since_time=standing.since_time or time,
        step=step,
        time=time,
        evaluation=evaluation,
    )


def _named(judgement: Judgement, memory: AttemptMemory) -> Judgement:
    """With the name of the component where the metric is derived from several."""
    name = memory.components.names.get(judgement.evaluation.metric)
    if name is None:
        return judgement
    return replace(judgement, evaluation=judgement.evaluation._replace(metric=name))


def _with_proposal(judgement: Judgement, memory: AttemptMemory) -> Judgement:
    """Adds the rule's action where the alert begins to fire and nothing forbids it."""
    rule = judgement.rule
    if judgement.change.after is not AlertState.FIRING or rule is None or rule.action is None:
        return judgement
    if _firing(memory).intersection(rule.action.unless):
        return judgement
    argument = judgement.evaluation.argument
    if rule.action.command in ARGUMENT_KINDS and not (argument is not None and argument > 0):
        return judgement
    return replace(judgement, proposal=Proposal(kind=rule.action.command, argument=argument))


def _firing(memory: AttemptMemory) -> set[str]:
    """What was ended by a newer attempt goes on to hold back what it held back."""
    return {key.partition("/")[0] for key, s in memory.standings.items() if s.state is AlertState.FIRING or s.over}


def _verdict(rule: Rule, memory: AttemptMemory, evaluation: Evaluation) -> Verdict:
    metric, value, threshold = evaluation.metric, evaluation.value, evaluation.threshold
    bounds = evaluation.bounds
    if evaluation.truth is Truth.INACTIVE:
        metric, value, threshold, bounds = read(rule, memory.window, memory.rules[rule.key])
    return Verdict(
        truth=evaluation.truth,
        reason=evaluation.reason,
        value=value,
        threshold=threshold,
        metric=metric if bounds and threshold is not None else "",
    )
