"""Runs: the list, one run, its texts and events, and the long poll for changes."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Query
from fastapi.concurrency import run_in_threadpool
from pydantic import Field, StringConstraints

from rlvitals.contract.hooks import HooksView
from rlvitals.contract.report import EventKind
from rlvitals.contract.view import ChangesView, EventView, Light, Page, RunChoices, RunState, RunView
from rlvitals_monitor.api.deps import (
    PAGE_DEFAULT,
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
from rlvitals_monitor.errors import BadRequest
from rlvitals_monitor.live import EVERYTHING
from rlvitals_monitor.store import run_list, run_marks, runs, texts
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.run_list import Archived, Cursor, Order, OrderBy, RunFilter
from rlvitals_monitor.store.run_marks import Marks

WAIT_MAX_S = 30.0
LISTED_MAX = 1_000
Label = Annotated[
    str, StringConstraints(min_length=1, max_length=run_marks.LABEL_CHARS_MAX, strip_whitespace=True)
]

router = APIRouter(prefix="/api/v1", tags=["runs"])


@dataclass(frozen=True, slots=True, kw_only=True)
class MarksBody:
    """``labels`` replaces all of them; ``add_labels`` and ``remove_labels`` change some, whatever others do."""

    owner: Annotated[str | None, Field(max_length=run_marks.OWNER_CHARS_MAX)] = None
    labels: Annotated[list[Label] | None, Field(max_length=run_marks.LABELS_MAX)] = None
    add_labels: Annotated[list[Label], Field(max_length=run_marks.LABELS_MAX)] = field(default_factory=list)
    remove_labels: Annotated[list[Label], Field(max_length=run_marks.LABELS_MAX)] = field(default_factory=list)
    notes: Annotated[str | None, Field(max_length=run_marks.NOTES_CHARS_MAX)] = None
    archived: bool | None = None

    def marks(self) -> Marks:
        return Marks(
            owner=self.owner,
            labels=None if self.labels is None else tuple(self.labels),
            add_labels=tuple(self.add_labels),
            remove_labels=tuple(self.remove_labels),
            notes=self.notes,
            archived=self.archived,
        )


After = Annotated[int | None, Query(description="`version` of the answer before; without it, at once")]
Wait = Annotated[float, Query(ge=0, le=WAIT_MAX_S, description="seconds to wait for something newer")]


Word = Annotated[str, StringConstraints(max_length=128)]


def read_filter(
    q: Annotated[str, Query(max_length=200, description="words that all stand in a run's own words")] = "",
    light: Annotated[list[Light] | None, Query(max_length=4)] = None,
    state: Annotated[list[RunState] | None, Query(max_length=8)] = None,
    project: Annotated[list[Word] | None, Query(max_length=50)] = None,
    framework: Annotated[list[Word] | None, Query(max_length=50, description="a name, of any version")] = None,
    owner: Annotated[str, Query(max_length=128)] = "",
    label: Annotated[list[Word] | None, Query(max_length=50, description="all of them")] = None,
    archived: Annotated[Archived, Query(description="whether archived runs are wanted")] = Archived.NO,
    seen_since: Annotated[datetime | None, Query(description="only runs that were heard of since")] = None,
) -> RunFilter:
    """Raises `BadRequest`."""
    if seen_since is not None and seen_since.tzinfo is None:
        raise BadRequest("expected a time with its zone, such as 2026-01-31T12:00:00Z", field="seen_since")
    return RunFilter(
        text=q,
        lights=frozenset(light or ()),
        states=frozenset(state or ()),
        projects=frozenset(project or ()),
        frameworks=frozenset(framework or ()),
        owner=owner,
        labels=frozenset(label or ()),
        archived=archived,
        seen_since=seen_since,
    )


Sort = Annotated[
    str,
    Query(
        pattern=f"^-?({'|'.join(by.value for by in OrderBy)})$",
        description="a column; with a minus before it, the greatest first",
    ),
]


@router.get("/runs", response_model=page_of(RunView), summary="Runs, newest first")
def list_runs(
    _who: Reader,
    store: StoreDep,
    now: NowDep,
    wanted: Annotated[RunFilter, Depends(read_filter)],
    sort: Sort = "-created",
    full: Annotated[bool, Query(description="with config, capabilities, knobs, notes and attempts")] = False,
    cursor: CursorQuery = "",
    limit: Annotated[int, Query(ge=1, le=LISTED_MAX, description="items on one page")] = PAGE_DEFAULT,
) -> ContractResponse:
    """Filtered or sorted by what is derived (light, state, rate, …), the newest 10,000 that fit the rest are
    looked at."""
    order = Order(by=OrderBy(sort.lstrip("-")), falling=sort.startswith("-"))
    after = _read_place(cursor, sort, order) if cursor else None
    with store.read() as connection:
        found, more = run_list.list_runs(
            connection, now, wanted, order=order, after=after, limit=limit, whole=full
        )
    following = "" if more is None else write_cursor(sort, list(more[0] or ()), more[1])
    return ContractResponse(Page(items=tuple(found), next=following))


def _read_place(cursor: str, sort: str, order: Order) -> Cursor:
    of, key, run = read_cursor(cursor, str, list, str)
    if of != sort or not run_list.is_key(key, order.by):
        raise BadRequest("expected a cursor from an earlier page of this order", field="cursor")
    return tuple(key) or None, run


@router.get(
    "/facets", response_model=RunChoices, summary="The projects, frameworks, owners and labels of all runs"
)
def read_choices(_who: Reader, store: StoreDep) -> ContractResponse:
    with store.read() as connection:
        return ContractResponse(run_list.read_choices(connection))


@router.patch("/runs/{run}", response_model=RunView, summary="What people say of a run")
def mark_run(
    run: RunId, body: MarksBody, who: Operator, store: StoreDep, live: LiveDep, now: NowDep
) -> ContractResponse:
    """Fields that are left out stay as they are; each change is audited."""
    with store.begin() as connection:
        run_marks.mark(connection, run, body.marks(), who.name, now)
        made = runs.read_run(connection, run, now)
    live.publish(run)
    return ContractResponse(made)


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
    if after is not None and after == live.version(run):
        await run_in_threadpool(_last_step, store, run)  # nobody waits for a run that is not there
    version = await live.wait(run, after, wait_s)
    return ContractResponse(
        ChangesView(version=version, last_step=await run_in_threadpool(_last_step, store, run))
    )


def _last_step(store: Store, run: str) -> int | None:
    """Raises `NotFound` for a run that nobody reported, so that nobody waits for it."""
    with store.read() as connection:
        return runs.last_step(connection, run)
