"""What a page of one run asks for again and again, each in one request and one look at the data."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query
from sqlalchemy import Connection

from rlvitals.contract.overview import RunOverview
from rlvitals.contract.report import EventKind
from rlvitals.contract.view import SeriesView
from rlvitals_monitor.api.deps import ContractResponse, NowDep, Reader, RunId, StoreDep
from rlvitals_monitor.api.rules import RuleBookDep, standing
from rlvitals_monitor.api.series import CHART_DEFAULT, CHART_MAX, STEP_MAX, Attempt, Metrics
from rlvitals_monitor.incidents import book
from rlvitals_monitor.rules.rule import Rule
from rlvitals_monitor.silences.book import noted
from rlvitals_monitor.store import alerts, commands, runs, series, texts
from rlvitals_monitor.store.tails import read_tails

LISTED_MAX = 200
"""Alerts and commands that an overview tells of."""
FEW = 12
"""Completions and checkpoints."""

router = APIRouter(prefix="/api/v1/runs/{run}", tags=["runs"])


@router.get("/overview", response_model=RunOverview, summary="All that a page of the run shows, but its charts")
def read_overview(
    run: RunId,
    _who: Reader,
    store: StoreDep,
    rules: RuleBookDep,
    now: NowDep,
    attempt: Attempt = None,
    metrics: Annotated[bool, Query(description="with what was measured, which may be ten thousand")] = True,
) -> ContractResponse:
    in_force = rules.refresh(now)
    with store.read() as connection:
        return ContractResponse(_overview(connection, in_force, run, attempt, now, with_metrics=metrics))


@router.get("/tails", response_model=list[SeriesView], summary="The newest points of metrics, from a step on")
def read_newest(
    run: RunId,
    _who: Reader,
    store: StoreDep,
    metric: Metrics,
    first: Annotated[int, Query(alias="from", ge=-STEP_MAX, le=STEP_MAX, description="first step")],
    attempt: Attempt = None,
    limit: Annotated[int, Query(ge=2, le=CHART_MAX, description="most points or buckets")] = CHART_DEFAULT,
) -> ContractResponse:
    """As they were reported, as long as they fit; a metric without any is left out."""
    with store.read() as connection:
        found = runs.find_attempt(connection, run, attempt)
        return ContractResponse(read_tails(connection, run, found, metric, first, limit))


def _overview(
    connection: Connection,
    rules: tuple[Rule, ...],
    run: str,
    attempt: str | None,
    now: datetime,
    *,
    with_metrics: bool,
) -> RunOverview:
    newest, _ = runs.find_attempt(connection, run)
    number, _ = runs.find_attempt(connection, run, attempt) if attempt else (newest, "")
    raised, _ = alerts.page(connection, run=run, limit=LISTED_MAX)
    asked, _ = commands.page(connection, run=run, limit=LISTED_MAX)
    view = runs.read_run(connection, run, now)
    return RunOverview(
        run=view,
        metrics=tuple(series.read_metrics(connection, number)) if with_metrics else None,
        alerts=noted(connection, raised, now),
        commands=asked,
        rules=standing(connection, rules, newest),
        incidents=tuple(book.of_attempt(connection, run, attempt, now, view)),
        texts=tuple(texts.read_texts(connection, run, step=None, limit=FEW)),
        hooks=runs.read_hooks(connection, run, attempt, now),
        checkpoints=tuple(texts.read_events(connection, run, limit=FEW, kind=EventKind.CHECKPOINT)),
    )
