"""Incidents: what a run's alerts mean together, the open ones of all runs, the story of one, its post-mortem."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from fastapi.responses import Response

from rlvitals.contract.incident import IncidentStory, IncidentView
from rlvitals_monitor.api.deps import ContractResponse, NowDep, Reader, RunId, StoreDep
from rlvitals_monitor.incidents import book
from rlvitals_monitor.incidents.markdown import write_markdown
from rlvitals_monitor.incidents.page import HEADERS, write_page
from rlvitals_monitor.incidents.trends import read_trends
from rlvitals_monitor.openapi import files

router = APIRouter(prefix="/api/v1", tags=["alerts"])

Attempt = Annotated[str | None, Query(max_length=64, description="by default the newest")]
Form = Annotated[Literal["md", "html"], Query(description="Markdown, or one HTML file that needs nothing else")]


@router.get("/incidents", response_model=list[IncidentView], summary="Open incidents of all runs, strongest first")
def list_open_incidents(_who: Reader, store: StoreDep, now: NowDep) -> ContractResponse:
    with store.read() as connection:
        return ContractResponse(book.open_ones(connection, now))


@router.get("/runs/{run}/incidents", response_model=list[IncidentView], summary="Causes, in the order of onset")
def list_incidents(
    run: RunId, _who: Reader, store: StoreDep, now: NowDep, attempt: Attempt = None
) -> ContractResponse:
    """Alerts that no known cause explains stand alone, under `alert:` and the rule's name."""
    with store.read() as connection:
        return ContractResponse(book.of_attempt(connection, run, attempt, now))


@router.get("/runs/{run}/incidents/{cause}", response_model=IncidentStory, summary="All that is known of one")
def read_incident(
    run: RunId, cause: str, _who: Reader, store: StoreDep, now: NowDep, attempt: Attempt = None
) -> ContractResponse:
    """Its alerts and their changes, what was done, checkpoints, and completions of its onset, guiltiest first."""
    with store.read() as connection:
        return ContractResponse(book.story(connection, run, attempt, cause, now))


@router.get(
    "/runs/{run}/incidents/{cause}/post-mortem",
    response_class=Response,
    summary="Its post-mortem as a file",
    responses=files("text/markdown", "text/html"),
)
def write_post_mortem(
    run: RunId, cause: str, _who: Reader, store: StoreDep, now: NowDep, attempt: Attempt = None, form: Form = "md"
) -> Response:
    with store.read() as connection:
        told = book.story(connection, run, attempt, cause, now)
        trends = read_trends(connection, told)
    words = re.sub(r"[^A-Za-z0-9._-]+", "-", f"post-mortem-{run}-{told.incident.cause}")
    name = f'attachment; filename="{words}.{form}"'
    if form == "html":
        headers = {**HEADERS, "Content-Disposition": name}
        return Response(write_page(told, trends, now), media_type="text/html", headers=headers)
    headers = {"Content-Disposition": name, "Cache-Control": "no-store"}
    return Response(write_markdown(told, trends, now), media_type="text/markdown", headers=headers)
