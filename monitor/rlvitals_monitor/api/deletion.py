"""Deleting a run."""

from __future__ import annotations

from fastapi import APIRouter

from rlvitals.contract.view import RunDeletion
from rlvitals_monitor.api.deps import Admin, ContractResponse, LiveDep, NowDep, RunId, StoreDep
from rlvitals_monitor.store import deletion, runs
from rlvitals_monitor.store.audit import append_audit

router = APIRouter(prefix="/api/v1", tags=["runs"])


@router.delete("/runs/{run}", response_model=RunDeletion, summary="Delete a run, for good")
def delete_run(run: RunId, store: StoreDep, live: LiveDep, who: Admin, now: NowDep) -> ContractResponse:
    """At once nobody sees it any more and a trainer that still sends is told, which trains on; the data are
    removed in the background. The audit stays. To delete it again changes nothing and answers the same.
    """
    with store.begin() as connection:
        name = runs.read_info(connection, run)
        done = deletion.mark(connection, run, who.name, now)
        if done is not None:
            said = f"{name.project}: {name.name}" if name.name else name.project
            append_audit(connection, at=now, run=run, who=who.name, what="run deleted", detail=said)
        found = done or deletion.find(connection, run)
        if found is None:
            raise runs.no_run(connection, run)
    live.publish(run)
    return ContractResponse(found)
