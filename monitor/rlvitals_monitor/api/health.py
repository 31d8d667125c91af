"""For orchestrators and Prometheus: alive, ready, and the service's own numbers."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse, Response
from sqlalchemy.exc import SQLAlchemyError

from rlvitals_monitor.api.deps import StoreDep
from rlvitals_monitor.api.problems import problem

router = APIRouter(tags=["health"])


@router.get("/healthz", response_class=PlainTextResponse, summary="The process answers")
async def healthz() -> PlainTextResponse:
    return PlainTextResponse("ok\n")


@router.get("/readyz", response_class=PlainTextResponse, summary="The database answers and has this code's schema")
def readyz(store: StoreDep) -> Response:
    try:
        current = store.is_current()
    except SQLAlchemyError as error:
        return problem(503, f"the database does not answer: {type(error).__name__}", kind="not-ready")
    if not current:
        return problem(503, "the schema is not this code's: run `rlvitals db migrate`", kind="not-ready")
    return PlainTextResponse("ready\n")


@router.get("/metrics", response_class=PlainTextResponse, summary="The service's own numbers for Prometheus")
def metrics(request: Request) -> PlainTextResponse:
    return PlainTextResponse(request.app.state.telemetry.render(), media_type="text/plain; version=0.0.4")
