"""Takes reports in: bounded, parsed off the event loop, stored in one transaction, answered after its commit."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from anyio import CapacityLimiter, fail_after, to_thread
from fastapi import APIRouter, Request
from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError
from starlette.requests import ClientDisconnect

from rlvitals.contract.codec import DecodeError
from rlvitals.contract.command import Command, Outcome
from rlvitals.contract.report import (
    PAUSED_HEARTBEAT_S,
    RECEIPT_HEARTBEAT_S,
    Phase,
    Receipt,
    Refusal,
    ReportBatch,
)
from rlvitals_monitor.api.deps import ContractResponse, Ingester, NowDep
from rlvitals_monitor.auth import Principal
from rlvitals_monitor.clocks import on_our_clock
from rlvitals_monitor.control import handover
from rlvitals_monitor.document import JSON, NDJSON, REFUSALS_MAX, Document, read_columns, read_lines, unpack
from rlvitals_monitor.errors import BadRequest, Forbidden, ServiceError, TooLarge, TooSlow, WrongMediaType
from rlvitals_monitor.intake import PARSED_TIMES, Holding
from rlvitals_monitor.settings import Settings
from rlvitals_monitor.store.admission import check
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.ingest import Stored, store_batch, stored_through
from rlvitals_monitor.store.runs import project_of

PARSERS = 8
"""Bodies that are unpacked or stored at once."""
BODY_S = 60.0
"""A body that comes more slowly holds its place for no longer."""

router = APIRouter(prefix="/api/v1", tags=["reports"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """A body and what its request's head says of it."""

    body: bytes
    media_type: str
    encoding: str
    query: dict[str, str]


@router.post(
    "/reports",
    response_model=Receipt,
    summary="Store a batch of reports",
    openapi_extra={
        "requestBody": {
            "required": True,
            "description": "Column JSON (may be gzipped), or one JSON object a line with run, attempt, writer and "
            "project in the query.",
            "content": {JSON: {"schema": {"type": "object"}}, NDJSON: {"schema": {"type": "string"}}},
        }
    },
)
async def post_reports(request: Request, who: Ingester, now: NowDep) -> ContractResponse:
    state = request.app.state
    began = time.perf_counter()
    try:
        with state.intake.room.hold() as holding:
            envelope = await _envelope(request, state.settings.max_body_bytes, holding)
            document = await to_thread.run_sync(read, envelope, state.settings, holding, limiter=_limiter(state))
            state.intake.charge(document.batch, who.name)
            async with state.intake.turns.of(document.batch.run.id):
                receipt = await to_thread.run_sync(_collect, state, who, document, now, limiter=_limiter(state))
    except ServiceError as error:
        state.telemetry.batches.labels(error.kind).inc()
        raise
    except DecodeError:
        state.telemetry.batches.labels(BadRequest.kind).inc()
        raise
    state.telemetry.batches.labels("stored").inc()
    state.telemetry.bytes.inc(len(envelope.body))
    state.telemetry.ingest_s.labels("all").observe(time.perf_counter() - began)
    return ContractResponse(receipt)


def _limiter(state: Any) -> CapacityLimiter:
    if not hasattr(state, "ingest_limiter"):
        state.ingest_limiter = CapacityLimiter(PARSERS)
    limiter: CapacityLimiter = state.ingest_limiter
    return limiter


async def _envelope(request: Request, limit: int, holding: Holding) -> Envelope:
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type not in (JSON, NDJSON):
        raise WrongMediaType(f"expected {JSON} or {NDJSON}, got {media_type[:80]!r}")
    body = bytearray()
    try:
        with fail_after(BODY_S):
            async for chunk in request.stream():
                holding.grow(len(chunk))
                body += chunk
                if len(body) > limit:
                    raise TooLarge(f"expected at most {limit} bytes")
    except TimeoutError:
        raise TooSlow(f"expected the whole body within {BODY_S:g} s") from None
    except ClientDisconnect:
        raise TooSlow("expected the whole body, whose sender has left") from None
    return Envelope(
        body=bytes(body),
        media_type=media_type,
        encoding=request.headers.get("content-encoding", "").strip().lower(),
        query=dict(request.query_params),
    )


def _collect(state: Any, who: Principal, document: Document, now: datetime) -> Receipt:
    """One batch from document to receipt; runs in a worker thread."""
    began = time.perf_counter()
    receipt, stored = collect(state.store, document, who, now)
    state.telemetry.ingest_s.labels("store").observe(time.perf_counter() - began)
    if stored is not None:
        _tell(state, document, stored, now)
    return receipt


def read(envelope: Envelope, settings: Settings, holding: Holding) -> Document:
    """The document in an envelope; raises `TooLarge`, `TooMany`, `BadRequest` or `DecodeError` for all of it."""
    body = unpack(envelope.body, envelope.encoding, settings.max_decoded_bytes)
    holding.grow(PARSED_TIMES * len(body))
    if envelope.media_type == NDJSON:
        return read_lines(body, envelope.query, settings.max_lines)
    return read_columns(body, settings.max_lines)


def collect(store: Store, document: Document, who: Principal, now: datetime) -> tuple[Receipt, Stored | None]:
    """Stores a document in one transaction and answers after its commit; raises `Forbidden` for a foreign project.

    A client that talks to another epoch of the store gets only told so (None): it begins again from there.
    """
    batch = on_our_clock(document.batch, now)
    check(batch)
    with store.begin() as connection:
        for project in {batch.run.project, project_of(connection, batch.run.id) or batch.run.project}:
            if not who.may_ingest(project):
                raise Forbidden(f"{who.name!r} may not report to project {project!r}")
        epoch = store.epoch(connection)
        if batch.epoch not in ("", epoch):
            return Receipt(epoch=epoch, stored_through=max(0, stored_through(connection, batch))), None
        stored = store_batch(connection, batch, now, through=document.through, lines=document.lines)
        unheard = _record_outcomes(connection, batch, stored.outcomes, document.lines, now)
        commands = _pending(connection, batch, now, newest=stored.newest)
    refused = (*document.refused, *stored.refused, *unheard)
    paused = stored.phase == Phase.PAUSED.value
    receipt = Receipt(
        epoch=epoch,
        stored_through=max(0, stored.stored_through),
        stored=stored.stored,
        duplicates=stored.duplicates,
        refused=refused[:REFUSALS_MAX],
        commands=commands,
        heartbeat_s=PAUSED_HEARTBEAT_S if paused else RECEIPT_HEARTBEAT_S,
    )
    return receipt, replace(stored, refused=refused)


def _record_outcomes(
    connection: Connection,
    batch: ReportBatch,
    outcomes: tuple[Outcome, ...],
    lines: Any,
    now: datetime,
) -> tuple[Refusal, ...]:
    """Each in its own savepoint: an outcome that cannot be recorded costs no report."""
    refused = []
    for outcome in outcomes:
        try:
            with connection.begin_nested():
                handover.record_outcome(connection, batch.run.id, outcome, now)
        except (ServiceError, ValueError, SQLAlchemyError) as error:
            line = lines.get(outcome.seq, 1)
            refused.append(
                Refusal(line=line, field="outcomes", reason=f"cannot be recorded: {type(error).__name__}")
            )
    return tuple(refused)


def _pending(connection: Connection, batch: ReportBatch, now: datetime, *, newest: bool) -> tuple[Command, ...]:
    try:
        with connection.begin_nested():
            return handover.pending_for(
                connection, batch.run.id, now, batch.attempt, heir_of=batch.heir_of, newest=newest
            )
    except (ServiceError, ValueError, SQLAlchemyError):
        # Reports are worth more than commands, which stay pending for the next receipt.
        return ()


def _tell(state: Any, document: Document, stored: Stored, now: datetime) -> None:
    telemetry = state.telemetry
    telemetry.records.labels("stored").inc(stored.stored)
    telemetry.records.labels("duplicate").inc(stored.duplicates)
    telemetry.records.labels("refused").inc(len(stored.refused))
    telemetry.note_refusals(stored.refused)
    if stored.progressed:
        newest = max(step.time_s for step in document.batch.steps)
        telemetry.lag_s.set(max(0.0, now.timestamp() - newest))
        if state.worker is not None:
            state.worker.wake(stored.run)
    state.live.publish(stored.run)
