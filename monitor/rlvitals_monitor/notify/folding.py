"""The order in which a message tells of a run's alerts: each cause, then its symptoms beneath it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from rlvitals.contract.alert import Alert, AlertState, Transition
from rlvitals_monitor.diagnosis.diagnose import Incident, diagnose
from rlvitals_monitor.diagnosis.fired import Fired
from rlvitals_monitor.diagnosis.table import load_table
from rlvitals_monitor.notify.notification import Item


def fold(items: Sequence[Item]) -> tuple[Item, ...]:
    """Causes by severity, what fires before what is over; within an incident in the order given.

    Judged by what the message itself holds, so that it reads the same each time it is sent.
    """
    causes = causes_of(item.transition.alert for item in items)
    led = [_under(item, causes) for item in items]
    leads: dict[tuple[str, str], list[Item]] = {}
    for item in led:
        leads.setdefault(
            (item.transition.alert.attempt, item.symptom_of or item.transition.alert.rule), []
        ).append(item)
    groups = [sorted(group, key=lambda item: bool(item.symptom_of)) for group in leads.values()]
    groups.sort(key=_weight)
    return tuple(item for group in groups for item in group)


def settle(items: Sequence[Item]) -> list[Item]:
    """Marks what began and ended within one message; ``items`` are in the order of what happened."""
    last = {item.transition.alert.id: item.transition for item in items}
    return [replace(item, settled=_is_settled(item.transition, last[item.transition.alert.id])) for item in items]


def _is_settled(transition: Transition, last: Transition) -> bool:
    return last is not transition and last.after is AlertState.RESOLVED


def _weight(group: Sequence[Item]) -> tuple[bool, int]:
    firing = [item for item in group if item.transition.after is AlertState.FIRING and not item.settled]
    return not firing, -max(item.transition.alert.severity.rank for item in firing or group)


def _under(item: Item, causes: dict[tuple[str, str], str]) -> Item:
    alert = item.transition.alert
    return replace(item, symptom_of=causes.get((alert.attempt, alert.rule), ""))


def causes_of(alerts: Iterable[Alert]) -> dict[tuple[str, str], str]:
    """(attempt, symptom's rule) → the rule that leads its incident."""
    by_attempt: dict[str, list[Fired]] = {}
    for alert in alerts:
        fired = Fired.of(alert)
        if fired is not None:
            by_attempt.setdefault(alert.attempt, []).append(fired)
    return {
        (attempt, symptom): lead
        for attempt, fired in by_attempt.items()
        for incident in diagnose(fired)
        for lead, symptom in _led(incident)
    }


def _led(incident: Incident) -> list[tuple[str, str]]:
    leads = next((c.leads for c in load_table().causes if c.cause == incident.cause), ())
    names = {name.partition("/")[0] for name in leads}
    lead = next((rule for rule in incident.alerts if rule in names), None)
    return [] if lead is None else [(lead, rule) for rule in incident.alerts if rule != lead]
