"""The same judging over steps that are already there: back-tests, rule tests, imported runs. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from rlvitals.contract.alert import AlertState, Severity
from rlvitals_monitor.alerts.judge import Judgement, judge_step, order
from rlvitals_monitor.alerts.memory import begin
from rlvitals_monitor.rules.rule import Rule

Step = tuple[int, datetime, Mapping[str, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """One alert from firing to its end (None: still open after the last step)."""

    alert: str
    severity: Severity
    fired: int
    resolved: int | None
    judgement: Judgement


def replay(rules: Sequence[Rule], steps: Iterable[Step], config: Mapping[str, object]) -> list[Judgement]:
    """Every change that these rules make of these steps, in order."""
    ordered = order(rules)
    memory = begin(ordered, config)
    return [judgement for step in steps for judgement in judge_step(ordered, memory, *step)]


def episodes(changes: Iterable[Judgement]) -> list[Episode]:
    """Firing alerts, by the step at which they fired."""
    found: dict[tuple[str, int], Episode] = {}
    for judgement in changes:
        key = (judgement.key, judgement.opened_step)
        alert, _, severity = judgement.key.partition("/")
        if judgement.change.after is AlertState.FIRING:
            found[key] = Episode(
                alert=alert,
                severity=Severity(severity),
                fired=judgement.step,
                resolved=None,
                judgement=judgement,
            )
        elif judgement.change.after is AlertState.RESOLVED and key in found:
            open_one = found[key]
            found[key] = Episode(
                alert=alert,
                severity=open_one.severity,
                fired=open_one.fired,
                resolved=judgement.step,
                judgement=open_one.judgement,
            )
    return sorted(found.values(), key=lambda e: (e.fired, e.alert, -e.severity.rank))
