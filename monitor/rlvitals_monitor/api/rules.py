"""Rules: the catalogue in force, and how each rule stands on a run."""

from __future__ import annotations

from typing import Annotated, cast

from fastapi import APIRouter, Depends, Query, Request

from rlvitals.contract.rulebook import RuleBookView
from rlvitals.contract.view import RuleView
from rlvitals_monitor.alerts.memory import verdicts_of
from rlvitals_monitor.alerts.rulebook import RuleBook
from rlvitals_monitor.alerts.views import view_catalogue, view_rules
from rlvitals_monitor.api.deps import ContractResponse, NowDep, Reader, RunId, StoreDep
from rlvitals_monitor.rules.rule import Rule
from rlvitals_monitor.store import evaluations, runs
from rlvitals_monitor.store.series import missing_reasons

router = APIRouter(prefix="/api/v1", tags=["rules"])


def get_rulebook(request: Request) -> RuleBook:
    """The one that the worker of this process judges by."""
    return cast(RuleBook, request.app.state.rulebook)


RuleBookDep = Annotated[RuleBook, Depends(get_rulebook)]


def get_rules(book: RuleBookDep, now: NowDep) -> tuple[Rule, ...]:
    """Those in force, after a look at the files."""
    return book.refresh(now)


RulesDep = Annotated[tuple[Rule, ...], Depends(get_rules)]


@router.get("/rules/status", response_model=RuleBookView, summary="Whether the rule files are in force")
def read_status(_who: Reader, book: RuleBookDep, now: NowDep) -> ContractResponse:
    """Where a file was changed for the worse, the last good rules go on, and ``problems`` says why."""
    book.refresh(now)
    return ContractResponse(book.view)


@router.get("/rules", response_model=list[RuleView], summary="The rules in force")
def list_rules(_who: Reader, rules: RulesDep) -> ContractResponse:
    return ContractResponse(view_catalogue(rules))


@router.get("/runs/{run}/rules", response_model=list[RuleView], summary="How each rule stands on a run")
def list_run_rules(
    run: RunId,
    _who: Reader,
    store: StoreDep,
    rules: RulesDep,
    attempt: Annotated[str | None, Query(max_length=64, description="by default the newest")] = None,
) -> ContractResponse:
    """A dormant rule cannot run here, an unknown one not now; both say why."""
    with store.read() as connection:
        number, _ = runs.find_attempt(connection, run, attempt)
        kept = evaluations.find(connection, number)
        reasons = missing_reasons(connection, number)
    verdicts, seen = ({}, frozenset()) if kept is None else verdicts_of(kept.memory)
    return ContractResponse(view_rules(rules, verdicts, seen, reasons))
