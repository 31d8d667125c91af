"""Commands: what waits for a person, what a person asks for, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, cast

from fastapi import APIRouter, Depends, Query, Request
from pydantic import Field, StrictFloat

from rlvitals.contract.command import CommandKind, CommandState
from rlvitals.contract.view import CommandView, Page
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
from rlvitals_monitor.control import mailbox
from rlvitals_monitor.control.bounds import Limits
from rlvitals_monitor.errors import NotFound
from rlvitals_monitor.store import commands
from rlvitals_monitor.store.runs import no_run

router = APIRouter(prefix="/api/v1", tags=["control"])

_Words = Annotated[str, Field(max_length=1000)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """``argument``: the new KL coefficient or value of ``knob``, a factor on the learning rate, or the seconds of
    the longest pause.
    """

    kind: CommandKind
    argument: StrictFloat | None = None
    why: _Words = ""
    knob: Annotated[str, Field(max_length=64)] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """``argument`` replaces the proposed one."""

    argument: StrictFloat | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Denial:
    reason: _Words = ""


async def get_limits(request: Request) -> Limits:
    return cast(Limits, request.app.state.limits)


LimitsDep = Annotated[Limits, Depends(get_limits)]
RunQuery = Annotated[str | None, Query(max_length=128)]


@router.get("/commands", response_model=page_of(CommandView))
def list_commands(
    store: StoreDep,
    _who: Reader,
    run: RunQuery = None,
    state: CommandState | None = None,
    cursor: CursorQuery = "",
    limit: Limit = PAGE_DEFAULT,
) -> ContractResponse:
    """Newest first."""
    after = cast("commands.Cursor | None", read_cursor(cursor, int, str) if cursor else None)
    with store.read() as conn:
        items, more = commands.page(conn, run=run, state=state, after=after, limit=limit)
    return ContractResponse(Page(items=items, next=write_cursor(*more) if more else ""))


@router.get("/commands/{command}", response_model=CommandView)
def read_command(command: str, store: StoreDep, _who: Reader) -> ContractResponse:
    """Of whichever run; 410 where that was deleted."""
    with store.read() as conn:
        found = commands.find(conn, command)
        if found is None:
            raise NotFound(f"there is no command {command[:64]!r}")
        if commands.read_subject(conn, found.run) is None:
            raise no_run(conn, found.run)
    return ContractResponse(found)


@router.post("/runs/{run}/commands", response_model=CommandView, status_code=201)
def ask(
    run: RunId, body: Ask, store: StoreDep, live: LiveDep, limits: LimitsDep, who: Operator, now: NowDep
) -> ContractResponse:
    """A person's own command: it needs no further approval and rides on the run's next receipt.

    Where two people must approve, it waits as ``proposed`` for another one.
    """
    with store.begin() as conn:
        made = mailbox.request(
            conn, run, body.kind, body.argument, who.name, body.why, now, limits, knob=body.knob
        )
    live.publish(run)
    return ContractResponse(made, status_code=201)


@router.post("/commands/{command}/approve", response_model=CommandView)
def approve(
    command: str,
    store: StoreDep,
    live: LiveDep,
    limits: LimitsDep,
    who: Operator,
    now: NowDep,
    body: Approval | None = None,
) -> ContractResponse:
    """Releases a proposal, or adds a voice where two people must approve (``persons``, ``voices``).

    409 when it is decided already or expired, when the run has ended, or when this person has approved it before.
    """
    argument = body.argument if body else None
    with store.begin() as conn:
        made = mailbox.approve(conn, command, who.name, now, argument, limits)
    live.publish(made.run)
    return ContractResponse(made)


@router.post("/commands/{command}/deny", response_model=CommandView)
def deny(
    command: str, store: StoreDep, live: LiveDep, who: Operator, now: NowDep, body: Denial | None = None
) -> ContractResponse:
    """Ends a proposal; 409 when it is decided already or expired."""
    with store.begin() as conn:
        made = mailbox.deny(conn, command, who.name, body.reason if body else "", now)
    live.publish(made.run)
    return ContractResponse(made)
