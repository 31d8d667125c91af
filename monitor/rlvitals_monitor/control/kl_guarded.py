"""The guarded policy: which of the two forces is the louder one, and whether the last change made it worse.

A penalty is a restoring force: more of it brings the policy nearer to its reference, until its step overshoots.
Too little and too much both show as a KL above its target; the ratio of the two pulls tells them apart.
"""

from __future__ import annotations

import math

from rlvitals_monitor.control.kl_decision import KlSettings, KlWhy, Observation
from rlvitals_monitor.control.kl_memory import TREND, KlMemory, Span, Trial, span
from rlvitals_monitor.control.kl_wish import Wish

PULL_DOMINATES = 1.0
PULL_FREE = 0.5
FAR, NEAR = 1.5, 0.5
RETURNING = 0.95
"""KL that fell below this share of its level 20 observations ago comes back by itself."""
LOW_STEPS = 200
AHEAD = 1.4
"""The middle of 50 observations after a change lies 35 beyond that of the last 20 before; a rise is over 25."""


def guarded(settings: KlSettings, memory: KlMemory, seen: Observation) -> Wish:
    """Lower where the KL pull dominates, raise where KL is far and stays so, lower slowly where it is low."""
    pull = seen.pull_ratio or 0.0
    if sum(p > PULL_DOMINATES for p in memory.pulls[-3:]) >= 2:
        return Wish(factor=0.8, reason=f"the KL pull is {pull:g} times the policy's: above 1 on 2 of 3 steps")
    target = settings.target
    if target is None or not 0.0 < target < math.inf or not memory.smooth:
        return Wish(factor=1.0, reason="no KL target is set, so KL is neither high nor low", hold=KlWhy.NO_TARGET)
    kl = memory.smooth[-1]
    shown = f"KL {kl:g} is {kl / target:.3g} times the target"
    if kl > FAR * target:
        return _far(memory, pull, shown)
    if memory.low_since is not None and seen.step - memory.low_since >= LOW_STEPS:
        return Wish(factor=0.9, reason=f"{shown}, below half of it for {seen.step - memory.low_since} steps")
    return Wish(factor=1.0, reason=f"{shown}, the KL pull {pull:.3g} times the policy's")


def _far(memory: KlMemory, pull: float, shown: str) -> Wish:
    if pull >= PULL_FREE:
        return Wish(factor=1.0, reason=f"{shown}, but the KL pull is {pull:.3g} times the policy's already")
    if len(memory.smooth) <= TREND or memory.smooth[-1] < RETURNING * memory.smooth[0]:
        return Wish(factor=1.0, reason=f"{shown}, and is on its way back")
    return Wish(factor=1.2, reason=f"{shown} and does not return; the KL pull is {pull:.3g} times the policy's")


def review(trial: Trial, settings: KlSettings, memory: KlMemory) -> str:
    """What the change made worse, in words, or nothing.

    A raise is worse if the KL pull dominates since, if KL rises and the KL pull is not the weaker force any more
    (while it is, the drift goes on and the raise was too small), or if the reward falls and KL does not. A lower
    is worse if KL rises beyond 1.5 × the target (without one: rises at all), or if the reward falls and KL does
    not: less penalty can only harm by letting the policy go, and where KL fell it did not go.
    """
    kl, reward, pulls = span(memory.kls), span(memory.rewards), span(memory.pulls)
    if kl is None or reward is None:
        return ""
    fell, rose = _beyond(trial.reward, reward, sign=-1.0), _beyond(trial.kl, kl, sign=1.0)
    if trial.after > trial.before:
        pull = pulls.mean if pulls is not None else 0.0
        pulled = pull > PULL_DOMINATES or (rose and pull >= PULL_FREE)
        worse = pulled or (fell and kl.mean >= trial.kl.recent)
    else:
        worse = (fell and kl.mean >= trial.kl.recent) or (
            rose and (settings.target is None or kl.mean > FAR * settings.target)
        )
    moves = f"KL {trial.kl.recent:.3g} → {kl.mean:.3g}, reward {trial.reward.recent:.3g} → {reward.mean:.3g}"
    return f"made it worse ({moves})" if worse else ""


def _beyond(before: Span, after: Span, *, sign: float) -> bool:
    """Whether it went ``sign``'s way by over a standard deviation more than its own course led to expect.

    Where it had gone that way already in the steps on which the change was decided, it is measured from there.
    """
    course = max(0.0, sign * before.rise * AHEAD)
    spread = math.sqrt((before.spread**2 + after.spread**2) / 2.0)
    level = max(sign * before.recent, sign * before.latest)
    return sign * after.mean - level > course + spread
