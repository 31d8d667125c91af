"""For orchestrators and Prometheus: alive, ready, and the service's own numbers."""

from __future__ import annotations

import contextlib
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Depends, FastAPI, Request, Security
from fastapi.responses import PlainTextResponse, Response
from fastapi.security import HTTPAuthorizationCredentials
from sqlalchemy.exc import SQLAlchemyError

from rlvitals.contract.health import HealthView, PartHealth
from rlvitals_monitor.api.deps import BEARER, ContractResponse, NowDep, Reader, StoreDep, require
from rlvitals_monitor.api.problems import problem
from rlvitals_monitor.auth import READ
from rlvitals_monitor.store import deliveries, footprint
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.telemetry import Telemetry
from rlvitals_monitor.wellness import judge, read_facts

router = APIRouter(tags=["health"])


@router.get("/healthz", response_class=PlainTextResponse, summary="The process answers")
async def healthz() -> PlainTextResponse:
    return PlainTextResponse("ok\n")


@router.get("/readyz", response_class=PlainTextResponse, summary="The database answers and has this code's schema")
def readyz(request: Request, store: StoreDep) -> Response:
    if request.app.state.draining:
        return problem(503, "this process is about to stop: send to another", kind="not-ready")
    try:
        current = store.is_current()
    except SQLAlchemyError as error:
        return problem(503, f"the database does not answer: {type(error).__name__}", kind="not-ready")
    if not current:
        return problem(503, "the schema is not this code's: run `rlvitals db migrate`", kind="not-ready")
    return PlainTextResponse("ready\n")


@router.get("/api/v1/health", response_model=HealthView, summary="How each part of the service is")
def read_health(request: Request, _who: Reader, now: NowDep) -> ContractResponse:
    """Of the process that answers. What `/healthz` and `/readyz` leave out, since they tell it to anybody."""
    parts, heartbeat = _parts(request.app, now), request.app.state.heartbeat
    view = HealthView(
        at=now,
        well=all(part.well for part in parts),
        parts=parts,
        heartbeat=None if heartbeat is None else heartbeat.view,
    )
    return ContractResponse(view)


def _parts(app: FastAPI, now: datetime) -> tuple[PartHealth, ...]:
    return judge(read_facts(app.state.store, app.state.worker, app.state.dispatcher), now)


def may_read_metrics(
    request: Request,
    store: StoreDep,
    bearer: Annotated[HTTPAuthorizationCredentials | None, Security(BEARER)],
    now: NowDep,
) -> None:
    if not request.app.state.settings.metrics_without_token:
        require(READ)(request, store, bearer, now)


@router.get(
    "/metrics",
    response_class=PlainTextResponse,
    summary="The service's own numbers for Prometheus",
    dependencies=[Depends(may_read_metrics)],
)
def metrics(request: Request, store: StoreDep, now: NowDep) -> PlainTextResponse:
    """For a token that may read; for everybody with ``RLVITALS_METRICS_WITHOUT_TOKEN=1``."""
    state = request.app.state
    state.telemetry.note_parts(_parts(request.app, now))
    state.telemetry.held.set(state.intake.room.held)
    with contextlib.suppress(SQLAlchemyError):  # a database that does not answer is told by the part of its name
        _note_database(state.telemetry, store, now)
    return PlainTextResponse(state.telemetry.render(), media_type="text/plain; version=0.0.4")


def _note_database(telemetry: Telemetry, store: Store, now: datetime) -> None:
    with store.read() as connection:
        telemetry.note_queues(footprint.read_queues(connection, now), now)
        telemetry.note_deliveries(deliveries.standings(connection))
        telemetry.size.set(footprint.size_bytes(connection))
        telemetry.runs.set(footprint.count_runs(connection))
