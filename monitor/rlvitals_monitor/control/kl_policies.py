"""KL policies by name: what each would do at a step, as a pure function of settings, memory and that step."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rlvitals_monitor.control.kl_decision import KlSettings, Observation
from rlvitals_monitor.control.kl_guarded import guarded
from rlvitals_monitor.control.kl_memory import KlMemory
from rlvitals_monitor.control.kl_wish import Wish

ARTICLE_STEPS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class KlPolicy:
    """``wish`` is asked once the gates are open. ``inputs`` must be finite numbers; ``warning`` is for people."""

    name: str
    says: str
    wish: Callable[[KlSettings, KlMemory, Observation], Wish]
    inputs: tuple[str, ...]
    needs_target: bool = True
    needs_force: bool = False
    least_steps: int = 1
    reviews: bool = False
    warning: str = ""


def target_tracking(settings: KlSettings, memory: KlMemory, seen: Observation) -> Wish:
    """Raise above target, lower below: the proportional error clipped to ±0.2, summed since the last change."""
    shown = (
        f"KL has been {'above' if memory.wish > 0 else 'below'} the target {settings.target:g}, now {seen.kl:g}"
    )
    return Wish(factor=math.exp(memory.wish), reason=shown)


def gradient_guard(settings: KlSettings, memory: KlMemory, seen: Observation) -> Wish:
    """Lower by a fifth where the KL pull exceeds the policy's on 2 of 3 steps; never raise."""
    if sum(pull > 1.0 for pull in memory.pulls[-3:]) >= 2:
        return Wish(factor=0.8, reason=f"the KL pull is {seen.pull_ratio:g} times the policy's, above 1 on 2 of 3")
    return Wish(factor=1.0, reason=f"the KL pull is {seen.pull_ratio:g} times the policy's, not above 1 on 2 of 3")


def article(settings: KlSettings, memory: KlMemory, seen: Observation) -> Wish:
    """A widely read article's rule: mean KL above 1.2 × target lowers by 0.9, below 0.8 × raises by 1.05."""
    ema, target = memory.ema or 0.0, settings.target or math.inf
    shown = f"the mean KL {ema:g} is {ema / target:.3g} times the target"
    return Wish(factor=0.9 if ema > 1.2 * target else 1.05 if ema < 0.8 * target else 1.0, reason=shown)


POLICIES: Mapping[str, KlPolicy] = {
    policy.name: policy
    for policy in (
        KlPolicy(
            name="guarded",
            says="recommended: asks which force is the louder one, checks the jump, reverts what made it worse",
            wish=guarded,
            inputs=("capped", "pull_ratio", "reward"),
            needs_target=False,
            needs_force=True,
            reviews=True,
        ),
        KlPolicy(
            name="target-tracking",
            says="raises above the target, lowers below it (Ziegler et al. 2019)",
            wish=target_tracking,
            inputs=("kl",),
        ),
        KlPolicy(
            name="gradient-guard",
            says="lowers where the KL pull exceeds the policy's, and never raises",
            wish=gradient_guard,
            inputs=("pull_ratio",),
            needs_target=False,
        ),
        KlPolicy(
            name="article",
            says="lowers above the target, raises below it, every 100 steps",
            wish=article,
            inputs=("kl",),
            least_steps=ARTICLE_STEPS,
            warning=(
                "this rule turns the wrong way in every case but overshoot: it lowers the penalty while the "
                "policy runs away, and raises it where the penalty already pins the policy down"
            ),
        ),
    )
}
