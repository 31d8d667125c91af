"""How long data are kept: by project, and for all that have no line of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from rlvitals.contract.view import Page, RetentionView
from rlvitals_monitor.api.deps import Admin, ContractResponse, NowDep, Reader, StoreDep, page_of
from rlvitals_monitor.errors import NotFound
from rlvitals_monitor.store import retention
from rlvitals_monitor.store.audit import append_audit
from rlvitals_monitor.store.names import check_project

router = APIRouter(prefix="/api/v1", tags=["retention"])

DAYS_MIN, DAYS_MAX = 1.0, 36_500.0
Days = Annotated[float | None, Field(ge=DAYS_MIN, le=DAYS_MAX, allow_inf_nan=False)]
Project = Annotated[str, Query(max_length=128, description='"" is for all projects without a line of their own')]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """``project`` "" is for all without a line of their own. Days that are not told are for ever."""

    project: Annotated[str, Field(max_length=128)] = retention.EVERYBODY
    points_days: Days = None
    texts_days: Days = None
    histograms_days: Days = None
    runs_days: Days = None


@router.get("/retention", response_model=page_of(RetentionView), summary="What is kept how long")
def read_retention(store: StoreDep, _who: Reader) -> ContractResponse:
    """What holds for all first, then every project."""
    with store.read() as connection:
        return ContractResponse(Page(items=retention.read_all(connection)))


@router.put("/retention", response_model=RetentionView, summary="Choose what is kept how long")
def choose_retention(body: Choice, store: StoreDep, who: Admin, now: NowDep) -> ContractResponse:
    """What is older is removed in the background from now on, and does not come back."""
    if body.project != retention.EVERYBODY:
        check_project(body.project)
    days = {name: getattr(body, name) for name in retention.KINDS}
    with store.begin() as connection:
        chosen = retention.choose(connection, body.project, days, who.name, now)
        append_audit(connection, at=now, who=who.name, what="retention chosen", detail=_said(body.project, days))
    return ContractResponse(chosen)


@router.delete("/retention", response_model=page_of(RetentionView), summary="Take back what was chosen")
def take_retention_back(store: StoreDep, who: Admin, now: NowDep, project: Project = "") -> ContractResponse:
    """What holds for all holds again; without a project, everything is kept for ever where nothing else is said.
    Answers what is in force now; 404 if nothing was chosen.
    """
    with store.begin() as connection:
        if not retention.take_back(connection, project):
            raise NotFound(f"nothing was chosen for {_name(project)}")
        append_audit(connection, at=now, who=who.name, what="retention taken back", detail=_name(project))
        return ContractResponse(Page(items=retention.read_all(connection)))


def _said(project: str, days: dict[str, float | None]) -> str:
    kept = [f"{name.removesuffix('_days')} {'for ever' if n is None else f'{n:g} d'}" for name, n in days.items()]
    return f"{_name(project)}: {', '.join(kept)}"


def _name(project: str) -> str:
    return f"project {project!r}" if project else "all projects"
