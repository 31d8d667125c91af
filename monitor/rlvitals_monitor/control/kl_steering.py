"""One step of a KL policy behind the gates that all of them share. Pure.

It holds, with a named reason, whatever the policy thinks: while an alert says that KL is no guide, during warm-up
and cool-down, on numbers that are missing or not finite, and at the bounds around the user's own value.
"""

from __future__ import annotations

import math
from dataclasses import replace

from rlvitals_monitor.control.kl_decision import (
    HOLDING_ALERTS,
    KlDecision,
    KlSettings,
    KlWhy,
    Observation,
    check,
    check_positive,
)
from rlvitals_monitor.control.kl_guarded import review
from rlvitals_monitor.control.kl_memory import KlMemory, Trial, changed, observe, restarted, span
from rlvitals_monitor.control.kl_policies import KlPolicy
from rlvitals_monitor.control.kl_wish import Wish

METRIC_OF = {
    "kl": "kl.capped or kl.k3",
    "capped": "kl.capped",
    "pull_ratio": "kl.pull_ratio",
    "reward": "reward.mean",
}
_WORTH = 0.01
"""A smaller relative change is no command's worth."""
_ROUNDING = 1e-9
LANDS_WITHIN = 5
"""Steps within which a change that nobody had to approve is in force."""


def decide(
    policy: KlPolicy, settings: KlSettings, memory: KlMemory, seen: Observation
) -> tuple[KlDecision, KlMemory]:
    """One step: hold or set a value, and what to remember. Raises nothing for any numbers."""
    hold, memory = watch(policy, settings, memory, seen)
    if hold is not None:
        return hold, memory
    return _act(policy, settings, memory, seen)


def watch(
    policy: KlPolicy, settings: KlSettings, memory: KlMemory, seen: Observation
) -> tuple[KlDecision | None, KlMemory]:
    """Learns from a step without acting on it; the hold that the gates call for, or None where they are open."""
    if memory.step is not None and seen.step <= memory.step:
        text = f"step {seen.step} came after {memory.step}: a resume, so everything is learned anew"
        return _hold(seen, KlWhy.WENT_BACK, text), restarted(memory, seen.step)
    hold = _unusable(policy, settings, seen)
    if hold is not None:
        return hold, replace(memory, step=seen.step)
    memory, hold = _other_hand(replace(observe(memory, settings, seen), step=seen.step), seen)
    return hold or _too_early(policy, settings, memory, seen), memory


def _unusable(policy: KlPolicy, settings: KlSettings, seen: Observation) -> KlDecision | None:
    """What a step can't be learned from either."""
    opened = sorted(HOLDING_ALERTS & seen.alerts)
    if opened:
        return _hold(seen, KlWhy.ALERT, f"{', '.join(opened)} open: no coefficient cures that")
    if settings.bounds is None:
        return _hold(seen, KlWhy.NO_BASELINE, "the user's own coefficient is unknown, not finite or not above 0")
    found = check_positive(seen.step, "kl.coef", seen.coefficient, KlWhy.NOT_POSITIVE)
    if policy.needs_target and found is None:
        found = _target(settings, seen)
    for name in policy.inputs:
        found = found or check(seen.step, METRIC_OF[name], getattr(seen, name))
    if found is None and seen.grad_max is not None:
        found = check(seen.step, "kl.grad_max", seen.grad_max)
    return found


def _target(settings: KlSettings, seen: Observation) -> KlDecision | None:
    target = settings.target
    if target is not None and 0.0 < target < math.inf:
        return None
    shown = "not set" if target is None else f"{target:g}"
    return _hold(seen, KlWhy.NO_TARGET, f"the KL target is {shown}; a finite one above 0 is needed")


def _other_hand(memory: KlMemory, seen: Observation) -> tuple[KlMemory, KlDecision | None]:
    """A coefficient that is neither what was asked for nor what was before is someone else's: nothing to revert.

    One that is still as before was not applied, yet or at all; it is judged like any other after the cool-down.
    Where a person took a while to approve it, its windows begin when it is seen to be in force.
    """
    now, was = seen.coefficient or 0.0, memory.coefficient
    if was is None:
        return replace(memory, coefficient=now), None
    if _same(now, was):
        return _landed(replace(memory, coefficient=now), seen), None
    if memory.previous is not None and _same(now, memory.previous):
        return memory, None
    text = f"the coefficient is {now:g} where {was:g} was left: another hand set it"
    return changed(memory, seen.step, now, None), _hold(seen, KlWhy.OTHER_HAND, text)


def _landed(memory: KlMemory, seen: Observation) -> KlMemory:
    if memory.previous is None:
        return memory
    late = memory.changed_step is not None and seen.step - memory.changed_step > LANDS_WITHIN
    if late:
        memory = changed(memory, seen.step, seen.coefficient or 0.0, memory.trial)
    return replace(memory, previous=None)


def _too_early(policy: KlPolicy, settings: KlSettings, memory: KlMemory, seen: Observation) -> KlDecision | None:
    if memory.stopped:
        return _hold(seen, KlWhy.STOPPED, memory.stopped)
    if memory.observed < max(settings.warmup_steps, policy.least_steps):
        needed = max(settings.warmup_steps, policy.least_steps)
        return _hold(seen, KlWhy.WARM_UP, f"{memory.observed} of {needed} steps seen")
    wait = max(settings.change_steps, policy.least_steps)
    since = None if memory.changed_step is None else seen.step - memory.changed_step
    if since is not None and since < wait:
        return _hold(seen, KlWhy.COOL_DOWN, f"{since} of {wait} steps since the last change")
    return None


def _act(
    policy: KlPolicy, settings: KlSettings, memory: KlMemory, seen: Observation
) -> tuple[KlDecision, KlMemory]:
    now = seen.coefficient or 0.0
    memory = replace(memory, coefficient=now)
    trial = memory.trial if memory.trial is not None and _same(now, memory.trial.after) else None
    worse = review(trial, settings, memory) if trial is not None else ""
    if trial is not None and worse:
        return _revert(policy, settings, memory, seen, trial, worse)
    memory = replace(memory, trial=None)
    decision = _bounded(policy, settings, seen, policy.wish(settings, memory, seen))
    if decision.value is None:
        return decision, memory
    kl, reward = span(memory.kls), span(memory.rewards)
    begun = None
    if policy.reviews and kl is not None and reward is not None:
        begun = Trial(step=seen.step, before=now, after=decision.value, kl=kl, reward=reward)
    return decision, changed(memory, seen.step, decision.value, begun)


def _revert(
    policy: KlPolicy, settings: KlSettings, memory: KlMemory, seen: Observation, trial: Trial, worse: str
) -> tuple[KlDecision, KlMemory]:
    """Back to what was before, and no further change without a person."""
    reason = f"the change at step {trial.step} {worse}"
    if trial.before > trial.after and (hold := _force(policy, settings, seen, trial.before)) is not None:
        return hold, memory
    decision = KlDecision(step=seen.step, why=KlWhy.REVERT, reason=reason, value=trial.before)
    after = changed(memory, seen.step, trial.before, None)
    return decision, replace(after, stopped=f"{reason}; it was reverted at step {seen.step}: a person must look")


def _bounded(policy: KlPolicy, settings: KlSettings, seen: Observation, wish: Wish) -> KlDecision:
    """The wish within one change's factor, the bounds, and what the largest token's pull allows."""
    bounds, now = settings.bounds, seen.coefficient
    if bounds is None or now is None or wish.hold is not None or abs(wish.factor - 1.0) < _WORTH:
        return _hold(seen, wish.hold or KlWhy.NO_CAUSE, wish.reason)
    low, high = bounds.low, bounds.high
    if not low * (1 - _ROUNDING) <= now <= high * (1 + _ROUNDING):
        return _hold(seen, KlWhy.BEYOND, f"{now:g} is outside {low:g} … {high:g}: a person set it")
    factor = min(max(wish.factor, 1.0 / settings.largest_change), settings.largest_change)
    value = min(max(float(f"{now * factor:.6g}"), low), high)
    if _same(value, now):
        return _hold(seen, KlWhy.AT_BOUND, f"{now:g} is at the end of {low:g} … {high:g}: ask a person")
    if value > now and (hold := _force(policy, settings, seen, value)) is not None:
        return hold
    why = KlWhy.RAISE if value > now else KlWhy.LOWER
    return KlDecision(step=seen.step, why=why, reason=wish.reason, value=value)


def _force(policy: KlPolicy, settings: KlSettings, seen: Observation, value: float) -> KlDecision | None:
    """Under plain SGD a coefficient whose pull on one token passes this ends a run in a single step."""
    if seen.grad_max is None:
        text = "kl.grad_max is not measured, so a raise can't be checked"
        return _hold(seen, KlWhy.MISSING, text) if policy.needs_force else None
    force, limit = abs(seen.grad_max), settings.force_limit
    if value * force < limit:
        return None
    return _hold(seen, KlWhy.FORCE, f"{value:g} × the largest |k3'|, {force:g}, would not stay under {limit:g}")


def _hold(seen: Observation, why: KlWhy, reason: str) -> KlDecision:
    return KlDecision(step=seen.step, why=why, reason=reason)


def _same(a: float, b: float) -> bool:
    return math.isclose(a, b, rel_tol=1e-6)
