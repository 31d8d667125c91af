"""An incident as people see it: since when, the way back, what it costs, and who looks after it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from rlvitals.contract.alert import Alert, AlertState, Severity
from rlvitals.contract.incident import IncidentView
from rlvitals.contract.view import EventView, ExtremeView, RunView
from rlvitals_monitor.diagnosis.diagnose import Incident
from rlvitals_monitor.diagnosis.fired import Fired

UNEXPLAINED = "alert:"
"""Begins the name of an incident that is one rule's alerts, for which no known cause speaks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What is known around the incidents of one attempt: alerts by id, and checkpoints saved, newest first.

    ``stepped_at`` is the time of its last step, by the trainer's clock, as the alerts' own times are."""

    run: RunView
    attempt: str
    alerts: Mapping[str, Alert]
    saved: Sequence[EventView]
    stepped_at: datetime | None = None


def view_of(incident: Incident, around: Surroundings) -> IncidentView:
    own = [around.alerts[one] for one in incident.ids]
    since = min((alert.since_step for alert in own), default=incident.onset_step)
    first = min(own, key=lambda a: (a.since_step, a.id), default=None)
    healthy = last_healthy(around, own, since)
    onset_at = next((a.since_time for a in own if a.fired_step == incident.onset_step), None)
    firing = [alert for alert in own if alert.state is AlertState.FIRING]
    folder = healthy.payload.get("folder") if healthy is not None else None
    return IncidentView(
        cause=incident.cause,
        severity=incident.severity,
        headline=incident.headline,
        confidence=incident.confidence,
        advice=incident.advice,
        onset_step=incident.onset_step,
        onset_at=onset_at or (first.since_time if first else None),
        is_open=incident.is_open,
        alerts=incident.alerts,
        evidence=incident.evidence,
        change=dict(incident.change),
        isnt=incident.isnt,
        healthy_checkpoint=healthy.step if healthy is not None else None,
        healthy_checkpoint_path=folder if isinstance(folder, str) else "",
        gpu_hours=_gpu_hours(around, own),
        run=around.run.id,
        run_name=around.run.name,
        project=around.run.project,
        attempt=around.attempt,
        since_step=since,
        alert_ids=incident.ids,
        unseen=sum(not alert.acknowledged_by for alert in firing),
    )


def last_healthy(around: Surroundings, own: Sequence[Alert], since: int) -> EventView | None:
    """The newest saved before the first condition held, at a step at which nothing critical fired."""
    sick = [a for a in around.alerts.values() if a.severity is Severity.CRITICAL and a.fired_step is not None]
    for saved in around.saved:
        if saved.step is None or saved.step >= since:
            continue
        mine = saved.attempt == around.attempt
        if not (mine and any(_held(alert, saved.step) for alert in sick)):
            return saved
    return None


def _held(alert: Alert, step: int) -> bool:
    return alert.since_step <= step and (alert.resolved_step is None or step < alert.resolved_step)


def unexplained(
    fired: Iterable[Fired], known: Iterable[Incident], alerts: Mapping[str, Alert]
) -> Iterator[Incident]:
    """Each rule whose alerts no incident has, as one; not what merely informs."""
    explained = {one for incident in known for one in incident.ids}
    left: dict[str, list[Fired]] = {}
    for one in sorted(fired, key=lambda e: (e.fired, e.alert)):
        if one.id not in explained and one.severity is not Severity.INFO:
            left.setdefault(one.alert, []).append(one)
    for rule, some in left.items():
        last = alerts[some[-1].id]
        yield Incident(
            cause=f"{UNEXPLAINED}{rule.replace('/', '.')}",
            severity=max((one.severity for one in some), key=lambda severity: severity.rank),
            onset_step=some[0].fired,
            headline=last.summary or rule,
            confidence="low",
            advice=last.advice,
            evidence=tuple(one.evidence for one in some[:3]),
            alerts=(rule,),
            is_open=any(one.resolved is None for one in some),
            ids=tuple(one.id for one in some),
        )


def witness_words(seen: ExtremeView) -> str:
    """The token is untrusted text, cut to a length when it was stored; backslashes are the client's escapes."""
    parts = [
        "" if seen.token_id is None else f"token id {seen.token_id}",
        "" if seen.token is None else f"'{_printable(seen.token)}'",
        "" if seen.position is None else f"at position {seen.position}",
        "" if seen.sample is None else f"of sample {seen.sample}",
        "" if seen.masked is None else "hidden by the loss mask" if seen.masked else "under the loss mask",
    ]
    return " ".join(part for part in parts if part)


def _printable(token: str) -> str:
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in token)


def _gpu_hours(around: Surroundings, own: Sequence[Alert]) -> float | None:
    """From the onset to its end, or to the last step."""
    devices = around.run.config.get("world_size")
    if not own or not isinstance(devices, (int, float)) or isinstance(devices, bool):
        return None
    begin = min(alert.since_time for alert in own)
    ends = [alert.resolved_at for alert in own]
    known = [end for end in ends if end is not None]
    end = max(known) if len(known) == len(ends) else around.stepped_at or begin
    return max(0.0, (end - begin).total_seconds() / 3600 * float(devices))
