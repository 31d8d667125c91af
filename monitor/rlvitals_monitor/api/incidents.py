"""Incidents: what a run's alerts mean together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query
from sqlalchemy import Connection

from rlvitals.contract.alert import Alert
from rlvitals.contract.report import EventKind, Json
from rlvitals.contract.view import EventView, ExtremeView, IncidentView
from rlvitals_monitor.api.deps import PAGE_MAX, ContractResponse, NowDep, Reader, RunId, StoreDep
from rlvitals_monitor.diagnosis.diagnose import Incident, diagnose, one_of_each
from rlvitals_monitor.diagnosis.fired import Fired
from rlvitals_monitor.store import alerts, runs, series, texts

WITNESS_STEPS = 5
"""A rule that counts steps may fire on one that tells no token."""

router = APIRouter(prefix="/api/v1", tags=["alerts"])


@router.get("/runs/{run}/incidents", response_model=list[IncidentView], summary="Causes, in the order of onset")
def list_incidents(
    run: RunId,
    _who: Reader,
    store: StoreDep,
    now: NowDep,
    attempt: Annotated[str | None, Query(max_length=64, description="by default the newest")] = None,
) -> ContractResponse:
    with store.read() as connection:
        number, chosen = runs.find_attempt(connection, run, attempt)
        found, _ = alerts.page(connection, run=run, limit=PAGE_MAX)
        view = runs.read_run(connection, run, now)
        config = series.read_config(connection, run)
        saved = texts.read_events(connection, run, limit=PAGE_MAX, kind=EventKind.CHECKPOINT)
        own = [alert for alert in found if alert.attempt == chosen]
        fired = [_witnessed(connection, number, one) for one in map(Fired.of, own) if one is not None]
    incidents = one_of_each(diagnose(fired))
    seen_at = view.last_seen_at
    return ContractResponse([_view(incident, own, saved, config, seen_at) for incident in incidents])


def _witnessed(connection: Connection, attempt_number: int, fired: Fired) -> Fired:
    """With the token at which its metric was extreme, if the run says where."""
    span = fired.fired - WITNESS_STEPS, fired.fired
    seen = series.read_extremes(connection, attempt_number, fired.metric, *span, 1) if fired.metric else []
    return replace(fired, where=_words(seen[0])) if seen else fired


def _words(seen: ExtremeView) -> str:
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


def _view(
    incident: Incident, own: Sequence[Alert], saved: Sequence[EventView], config: Json, seen_at: datetime
) -> IncidentView:
    onset_at = next((a.since_time for a in own if a.fired_step == incident.onset_step), None)
    healthy = next((e for e in saved if e.step is not None and e.step < incident.onset_step), None)
    return IncidentView(
        cause=incident.cause,
        severity=incident.severity,
        headline=incident.headline,
        confidence=incident.confidence,
        advice=incident.advice,
        onset_step=incident.onset_step,
        onset_at=onset_at,
        is_open=incident.is_open,
        alerts=incident.alerts,
        evidence=incident.evidence,
        change=dict(incident.change),
        isnt=incident.isnt,
        healthy_checkpoint=healthy.step if healthy is not None else None,
        healthy_checkpoint_path=str(healthy.payload.get("folder", "")) if healthy is not None else "",
        gpu_hours=_gpu_hours(config, onset_at, seen_at),
    )


def _gpu_hours(config: Mapping[str, object], onset_at: datetime | None, seen_at: datetime) -> float | None:
    devices = config.get("world_size")
    if onset_at is None or not isinstance(devices, (int, float)) or isinstance(devices, bool):
        return None
    return max(0.0, (seen_at - onset_at).total_seconds() / 3600 * float(devices))
