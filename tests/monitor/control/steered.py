"""A KL policy driven over made-up steps, each of which obeys what was decided at the one before."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from rlvitals_monitor.control.kl_decision import KlDecision, KlSettings, Observation
from rlvitals_monitor.control.kl_memory import KlMemory
from rlvitals_monitor.control.kl_policies import POLICIES
from rlvitals_monitor.control.kl_steering import decide

USERS = KlSettings(users=0.1, target=0.2)
CALM = Observation(step=0, capped=0.2, k3=0.2, pull_ratio=0.3, grad_max=1.0, reward=0.5)


def steer(
    name: str,
    steps: Iterable[Observation],
    settings: KlSettings = USERS,
    *,
    obeys: bool = True,
    known: bool = True,
) -> list[KlDecision]:
    """The decisions; an observation without a coefficient has the one in force, if that is ``known``."""
    memory, now, made = KlMemory(), settings.users, []
    for seen in steps:
        seen = replace(seen, coefficient=now) if known and seen.coefficient is None else seen
        decision, memory = decide(POLICIES[name], settings, memory, seen)
        made.append(decision)
        now = decision.value if decision.value is not None and obeys else seen.coefficient
    return made


def row(seen: Observation = CALM, *, steps: int = 60, first: int = 0) -> list[Observation]:
    """The same observation, step after step."""
    return [replace(seen, step=first + n) for n in range(steps)]


def changes(made: Iterable[KlDecision]) -> list[tuple[int, str, float]]:
    return [(d.step, d.why.value, round(d.value, 12)) for d in made if d.value is not None]
