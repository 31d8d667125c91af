"""How the service itself fares: its parts, its database, what waits, what was dropped."""

from __future__ import annotations

from importlib.metadata import version

from fastapi import APIRouter, Request

from rlvitals.contract.health import DatabaseView, ServiceView
from rlvitals_monitor.api.deps import ContractResponse, NowDep, Reader, StoreDep
from rlvitals_monitor.store import footprint
from rlvitals_monitor.telemetry import Telemetry
from rlvitals_monitor.wellness import judge, read_facts

router = APIRouter(prefix="/api/v1", tags=["health"])

KEPT = ("stored", "duplicate")
"""What became of records that were not dropped."""


@router.get("/service", response_model=ServiceView, summary="How the service fares")
def read_service(request: Request, store: StoreDep, _who: Reader, now: NowDep) -> ContractResponse:
    """Counts are those of the process that answers."""
    state = request.app.state
    with store.read() as connection:
        queues = footprint.read_queues(connection, now)
        size, runs = footprint.size_bytes(connection), footprint.count_runs(connection)
    outcomes = _outcomes(state.telemetry)
    view = ServiceView(
        at=now,
        started_at=state.started_at,
        version=version("rlvitals"),
        role=state.settings.role.value,
        parts=judge(read_facts(store, state.worker, state.dispatcher), now),
        heartbeat=None if state.heartbeat is None else state.heartbeat.view,
        database=DatabaseView(
            kind="sqlite" if store.is_sqlite else "postgresql",
            size_bytes=size,
            runs=runs,
            free_bytes=store.free_bytes(),
        ),
        queues=queues,
        stored=outcomes.get("stored", 0),
        dropped={name: count for name, count in sorted(outcomes.items()) if name not in KEPT and count},
        lag_s=_lag_s(state.telemetry) if outcomes.get("stored") else None,
    )
    return ContractResponse(view)


def _outcomes(telemetry: Telemetry) -> dict[str, int]:
    """Records by what became of them."""
    samples = (sample for family in telemetry.records.collect() for sample in family.samples)
    return {s.labels["outcome"]: int(s.value) for s in samples if s.name.endswith("_total")}


def _lag_s(telemetry: Telemetry) -> float:
    return float(next(sample.value for family in telemetry.lag_s.collect() for sample in family.samples))
