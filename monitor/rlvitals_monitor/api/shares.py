"""Shared links: one run, for reading, for a while, for whoever has the link."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import Field

from rlvitals.contract.access import MadeShare, ShareView
from rlvitals_monitor.access import share_book
from rlvitals_monitor.access.share_scope import VIEW_CHARS_MAX
from rlvitals_monitor.api.deps import ContractResponse, NowDep, Operator, RunId, StoreDep
from rlvitals_monitor.store import shares

HOURS_MAX = share_book.LONGEST.total_seconds() / 3600

router = APIRouter(prefix="/api/v1", tags=["access"])

ShareId = Annotated[str, Path(max_length=32)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareAsk:
    """``view`` is what stands behind the run in its page's address, such as ``/texts?step=5``; empty for its
    first page."""

    hours: Annotated[float, Field(gt=0, le=HOURS_MAX, allow_inf_nan=False, strict=True)] = 24.0
    view: Annotated[str, Field(max_length=VIEW_CHARS_MAX)] = ""


@router.get("/shares", response_model=list[ShareView])
def list_shares(store: StoreDep, _who: Operator, now: NowDep) -> ContractResponse:
    """Of all runs, the newest first, also those that are over."""
    with store.read() as conn:
        return ContractResponse(shares.list_shares(conn, now))


@router.get("/runs/{run}/shares", response_model=list[ShareView])
def list_shares_of_run(run: RunId, store: StoreDep, _who: Operator, now: NowDep) -> ContractResponse:
    with store.read() as conn:
        return ContractResponse(shares.list_shares(conn, now, run))


@router.post("/runs/{run}/shares", response_model=MadeShare, status_code=201)
def share_run(run: RunId, store: StoreDep, who: Operator, ask: ShareAsk, now: NowDep) -> ContractResponse:
    """Whoever has the link sees this run, and nothing else. It is told here and never again."""
    with store.begin() as conn:
        made = share_book.make(conn, run, ask.view, timedelta(hours=ask.hours), who.name, now)
    return ContractResponse(made, 201)


@router.delete("/shares/{share}", status_code=204)
def revoke_share(share: ShareId, store: StoreDep, who: Operator, now: NowDep) -> None:
    """At once, also for who is looking."""
    with store.begin() as conn:
        share_book.revoke(conn, share, who.name, now)
