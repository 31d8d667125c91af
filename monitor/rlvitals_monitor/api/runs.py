"""Runs: the list, one run, its texts and events, and the long poll for changes."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.concurrency import run_in_threadpool

from rlvitals.contract.hooks import HooksView
from rlvitals.contract.report import EventKind
from rlvitals.contract.view import ChangesView, EventView, Page, RunView
from rlvitals_monitor.api.deps import (
    PAGE_DEFAULT,
    ContractResponse,
    CursorQuery,
    Limit,
    LiveDep,
    NowDep,
    Reader,
    RunId,
    StoreDep,
    page_of,
    read_cursor,
    write_cursor,
)
from rlvitals_monitor.live import EVERYTHING
from rlvitals_monitor.store import runs, texts
from rlvitals_monitor.store.engine import Store

WAIT_MAX_S = 30.0

router = APIRouter(prefix="/api/v1", tags=["runs"])

After = Annotated[int | None, Query(description="`version` of the answer before; without it, at once")]
Wait = Annotated[float, Query(ge=0, le=WAIT_MAX_S, description="seconds to wait for something newer")]


@router.get("/runs", response_model=page_of(RunView), summary="Runs, newest first")
def list_runs(
    _who: Reader,
    store: StoreDep,
    now: NowDep,
    project: Annotated[str | None, Query(max_length=128)] = None,
    cursor: CursorQuery = "",
    limit: Limit = PAGE_DEFAULT,
) -> ContractResponse:
    after = read_cursor(cursor, int, str) if cursor else None
    with store.read() as connection:
        found, more = runs.list_runs(connection, now, project=project, after=after, limit=limit)
    return ContractResponse(Page(items=tuple(found), next=write_cursor(*more) if more else ""))


@router.get("/runs/{run}", response_model=RunView, summary="One run with its attempts")
def read_run(run: RunId, _who: Reader, store: StoreDep, now: NowDep) -> ContractResponse:
    with store.read() as connection:
        return ContractResponse(runs.read_run(connection, run, now))


@router.get("/runs/{run}/events", response_model=list[EventView], summary="Events, newest first")
def read_events(
    run: RunId,
    _who: Reader,
    store: StoreDep,
    kind: Annotated[EventKind | None, Query(description="default: of every kind")] = None,
    limit: Limit = PAGE_DEFAULT,
) -> ContractResponse:
    with store.read() as connection:
        runs.find_attempt(connection, run)
        return ContractResponse(texts.read_events(connection, run, limit=limit, kind=kind))


@router.get("/runs/{run}/hooks", response_model=HooksView, summary="What the client's hooks in the trainer see")
def read_hooks(
    run: RunId,
    _who: Reader,
    store: StoreDep,
    now: NowDep,
    attempt: Annotated[str | None, Query(max_length=64, description="default: the newest")] = None,
) -> ContractResponse:
    with store.read() as connection:
        return ContractResponse(runs.read_hooks(connection, run, attempt, now))


@router.get("/changes", response_model=ChangesView, summary="Wait until anything changes")
async def wait_for_any(_who: Reader, live: LiveDep, after: After = None, wait_s: Wait = 20.0) -> ContractResponse:
    return ContractResponse(ChangesView(version=await live.wait(EVERYTHING, after, wait_s)))


@router.get("/runs/{run}/changes", response_model=ChangesView, summary="Wait until something of the run changes")
async def wait_for_run(
    run: RunId, _who: Reader, store: StoreDep, live: LiveDep, after: After = None, wait_s: Wait = 20.0
) -> ContractResponse:
    await run_in_threadpool(_last_step, store, run)
    version = await live.wait(run, after, wait_s)
    return ContractResponse(
        ChangesView(version=version, last_step=await run_in_threadpool(_last_step, store, run))
    )


def _last_step(store: Store, run: str) -> int | None:
    """Raises `NotFound` for a run that nobody reported, so that nobody waits for it."""
    with store.read() as connection:
        return runs.last_step(connection, run)
