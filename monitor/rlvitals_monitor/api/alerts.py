"""Alerts as they are, the changes of a run in order, and who looks after which."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, cast

from fastapi import APIRouter, Query
from pydantic import Field

from rlvitals.contract.alert import Alert, AlertState, Transition
from rlvitals.contract.view import Page
from rlvitals_monitor.alerts import attention
from rlvitals_monitor.api.channels import ChannelsDep
from rlvitals_monitor.api.deps import (
    PAGE_DEFAULT,
    PAGE_MAX,
    AlertId,
    ContractResponse,
    CursorQuery,
    Limit,
    LiveDep,
    NowDep,
    Operator,
    Reader,
    RunId,
    StoreDep,
    page_of,
    read_cursor,
    write_cursor,
)
from rlvitals_monitor.notify.escalate import escalate
from rlvitals_monitor.silences import book
from rlvitals_monitor.store import alerts, runs

router = APIRouter(prefix="/api/v1", tags=["alerts"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledgement:
    """``by``: the name to note; without it the name of the token."""

    by: Annotated[str, Field(max_length=alerts.WHO_LIMIT)] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Escalated:
    """``channel``: the name of the channel that is to hear of it now."""

    channel: Annotated[str, Field(min_length=1, max_length=128)]


@router.get("/alerts", response_model=page_of(Alert), summary="Alerts, newest first")
def list_alerts(
    _who: Reader,
    store: StoreDep,
    now: NowDep,
    run: Annotated[str | None, Query(max_length=128)] = None,
    state: Annotated[list[AlertState] | None, Query(description="repeatable; by default all but inactive")] = None,
    cursor: CursorQuery = "",
    limit: Limit = PAGE_DEFAULT,
) -> ContractResponse:
    after = cast("alerts.Cursor | None", read_cursor(cursor, int, str) if cursor else None)
    with store.read() as connection:
        items, more = alerts.page(connection, run=run, states=state or (), after=after, limit=limit)
        shown = book.noted(connection, items, now)
    return ContractResponse(Page(items=shown, next=write_cursor(*more) if more else ""))


@router.get("/runs/{run}/transitions", response_model=list[Transition], summary="Changes of alerts, oldest first")
def list_transitions(
    run: RunId,
    _who: Reader,
    store: StoreDep,
    attempt: Annotated[str | None, Query(max_length=64, description="by default all attempts")] = None,
    limit: Limit = PAGE_MAX,
) -> ContractResponse:
    """The newest ``limit`` of them."""
    with store.read() as connection:
        number, _ = runs.find_attempt(connection, run, attempt)
        only = None if attempt is None else number
        return ContractResponse(alerts.transitions_of(connection, run, limit, only))


@router.post("/alerts/{alert}/acknowledge", response_model=Alert, summary="Note who looks after an alert")
def acknowledge(
    alert: AlertId, body: Acknowledgement, who: Operator, store: StoreDep, live: LiveDep, now: NowDep
) -> ContractResponse:
    """The first name stays."""
    with store.begin() as connection:
        noted = attention.acknowledge(connection, alert, who.name, now, name=body.by.strip())
    live.publish(noted.run)
    return ContractResponse(noted)


@router.post("/alerts/{alert}/unacknowledge", response_model=Alert, summary="Nobody looks after an alert any more")
def unacknowledge(alert: AlertId, who: Operator, store: StoreDep, live: LiveDep, now: NowDep) -> ContractResponse:
    """Reminders and escalation go on, if it still fires."""
    with store.begin() as connection:
        noted = attention.unacknowledge(connection, alert, who.name, now)
    live.publish(noted.run)
    return ContractResponse(noted)


@router.post("/alerts/{alert}/escalate", response_model=Alert, summary="Tell another channel now")
def escalate_alert(
    alert: AlertId,
    body: Escalated,
    who: Operator,
    store: StoreDep,
    channels: ChannelsDep,
    live: LiveDep,
    now: NowDep,
) -> ContractResponse:
    """As a channel's own `escalate` would after a while: silences and quiet hours of that channel hold, and nobody
    is told of what somebody looks after or what does not fire."""
    with store.begin() as connection:
        told = escalate(connection, alert, channels, body.channel, who.name, now)
    live.publish(told.run)
    return ContractResponse(told)
