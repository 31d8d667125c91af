"""Alerts of one run → incidents, each with the cause that explains most of them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from rlvitals.contract.alert import Severity
from rlvitals_monitor.diagnosis.fired import Fired
from rlvitals_monitor.diagnosis.table import Cause, Table, load_table

BEFORE_STEPS = 25
"""A symptom may show so many steps before its cause: rules differ in how long they wait."""
AFTER_STEPS = 200
"""A symptom that begins later than this after its cause's last alert ended is another story."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """``leads`` and ``symptoms`` are in the order of onset; ``severity`` is the strongest among them; ``ids`` are
    the stored alerts."""

    cause: str
    severity: Severity
    onset_step: int
    headline: str
    confidence: str
    advice: str
    evidence: tuple[str, ...]
    alerts: tuple[str, ...]
    change: tuple[tuple[str, str], ...] = ()
    isnt: str = ""
    is_open: bool = True
    ids: tuple[str, ...] = ()


def diagnose(fired: Iterable[Fired], table: Table | None = None) -> list[Incident]:
    """Incidents by onset. Information never makes an incident, but it may be a symptom of one."""
    known = table or load_table()
    left = sorted(fired, key=lambda e: (e.fired, e.alert))
    found: list[Incident] = []
    for cause in known.causes:
        while led := _led(cause, left):
            taken = [*led, *_explained(cause, led, left)]
            left = [one for one in left if one not in taken]
            found.append(_incident(cause, sorted(taken, key=lambda e: (e.fired, e.alert)), led))
    return sorted(found, key=lambda incident: (incident.onset_step, -incident.severity.rank))


def _led(cause: Cause, left: Sequence[Fired]) -> list[Fired]:
    """The first alert that establishes the cause, with its kin of the same time."""
    leads = [e for e in left if _is(e, cause.leads) and e.severity is not Severity.INFO]
    if not leads:
        return []
    near = [e for e in leads if _near(leads[0], e)]
    if cause.beside and not any(_is(e, cause.beside) and _near(leads[0], e) for e in left):
        return []
    return near


def _explained(cause: Cause, led: Sequence[Fired], left: Sequence[Fired]) -> list[Fired]:
    return [e for e in left if e not in led and _is(e, cause.explains) and any(_near(lead, e) for lead in led)]


def _near(lead: Fired, other: Fired) -> bool:
    until = lead.resolved if lead.resolved is not None else other.fired
    return lead.fired - BEFORE_STEPS <= other.fired <= until + AFTER_STEPS


def _is(one: Fired, names: Sequence[str]) -> bool:
    return one.alert in names or f"{one.alert}/{one.severity.value}" in names


def _incident(cause: Cause, taken: Sequence[Fired], led: Sequence[Fired]) -> Incident:
    strongest = max(taken, key=lambda e: e.severity.rank)
    return Incident(
        cause=cause.cause,
        severity=strongest.severity,
        onset_step=min(e.fired for e in taken if e.severity is not Severity.INFO),
        headline=cause.headline,
        confidence=cause.confidence,
        advice=cause.advice,
        evidence=tuple(one.evidence for one in led),
        alerts=tuple(dict.fromkeys(e.alert for e in taken)),
        change=tuple(cause.change.items()),
        isnt=cause.isnt,
        is_open=any(one.resolved is None for one in taken),
        ids=tuple(e.id for e in taken if e.id),
    )


def one_of_each(incidents: Iterable[Incident]) -> list[Incident]:
    """The first incident of each cause, with the alerts of its repetitions."""
    found: dict[str, Incident] = {}
    for incident in incidents:
        first = found.get(incident.cause)
        if first is None:
            found[incident.cause] = incident
        else:
            strongest = max(first.severity, incident.severity, key=lambda severity: severity.rank)
            alerts = tuple(dict.fromkeys([*first.alerts, *incident.alerts]))
            found[incident.cause] = replace(
                first,
                severity=strongest,
                alerts=alerts,
                is_open=first.is_open or incident.is_open,
                ids=(*first.ids, *incident.ids),
            )
    return list(found.values())
