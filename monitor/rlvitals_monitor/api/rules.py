"""Rules: those in force, how each stands on one run and on all that are going on, and a test message about one."""

from __future__ import annotations

from typing import Annotated, cast

from fastapi import APIRouter, Depends, Path, Query, Request
from sqlalchemy import Connection

from rlvitals.contract.alert import Severity
from rlvitals.contract.rulebook import JudgedView, RuleBoardView, RuleBookView, RuleSourceView, RuleTestView
from rlvitals.contract.view import RuleView
from rlvitals_monitor.alerts.board import board
from rlvitals_monitor.alerts.memory import verdicts_of
from rlvitals_monitor.alerts.rulebook import RuleBook
from rlvitals_monitor.alerts.views import view_catalogue, view_rules
from rlvitals_monitor.api.board import read_board
from rlvitals_monitor.api.channels import ChannelsDep
from rlvitals_monitor.api.deps import ContractResponse, NowDep, Operator, Reader, RunId, StoreDep
from rlvitals_monitor.errors import NotFound
from rlvitals_monitor.notify.rehearsal import rehearse
from rlvitals_monitor.rules.rule import Rule, as_document
from rlvitals_monitor.store import evaluations, runs
from rlvitals_monitor.store.audit import append_audit
from rlvitals_monitor.store.series import missing_reasons

router = APIRouter(prefix="/api/v1", tags=["rules"])


async def get_rulebook(request: Request) -> RuleBook:
    """The one that the worker of this process judges by."""
    return cast(RuleBook, request.app.state.rulebook)


RuleBookDep = Annotated[RuleBook, Depends(get_rulebook)]


def get_rules(book: RuleBookDep, now: NowDep) -> tuple[Rule, ...]:
    """Those in force, after a look at the files."""
    return book.refresh(now)


RulesDep = Annotated[tuple[Rule, ...], Depends(get_rules)]
RuleName = Annotated[str, Path(max_length=64)]


@router.get("/rules/status", response_model=RuleBookView, summary="Whether the rule files are in force")
def read_status(_who: Reader, book: RuleBookDep, now: NowDep) -> ContractResponse:
    """Where a file was changed for the worse, the last good rules go on, and ``problems`` says why."""
    book.refresh(now)
    return ContractResponse(book.view)


@router.get("/rules/standing", response_model=RuleBoardView, summary="How each rule stands on the runs")
def read_standing(
    _who: Reader,
    store: StoreDep,
    rules: RulesDep,
    now: NowDep,
    run: Annotated[str, Query(max_length=128, description="by default all that are going on")] = "",
) -> ContractResponse:
    """By the newest attempt of each. A dormant rule cannot run there, an unknown one not now; both say why."""
    with store.read() as connection:
        judged, left_out = read_board(connection, run, now)
    return ContractResponse(board(rules, judged, left_out))


@router.get("/rules/{rule}/source", response_model=RuleSourceView, summary="A rule as it is written")
def read_source(rule: RuleName, _who: Reader, rules: RulesDep, severity: Severity) -> ContractResponse:
    """As a document of its own: put in force as it is, it changes nothing."""
    found = _find(rules, rule, severity)
    text = as_document(found)
    return ContractResponse(RuleSourceView(rule=rule, severity=severity, where=found.where, text=text))


@router.post("/rules/{rule}/test", response_model=RuleTestView, summary="A test message as if a rule fired")
def fire_rule(
    rule: RuleName,
    severity: Severity,
    who: Operator,
    store: StoreDep,
    rules: RulesDep,
    channels: ChannelsDep,
    now: NowDep,
    run: Annotated[str, Query(max_length=128, description="whose channels; by default those of any run")] = "",
) -> ContractResponse:
    """To every channel that would hear of it, at once; it says that it is a test. Recorded is only who asked."""
    found = _find(rules, rule, severity)
    with store.begin() as connection:
        info = runs.read_info(connection, run) if run else None
        append_audit(connection, at=now, run=run, who=who.name, what="rule test-fired", detail=found.key)
    return ContractResponse(rehearse(found, info, channels, now))


def _find(rules: tuple[Rule, ...], name: str, severity: Severity) -> Rule:
    found = next((rule for rule in rules if rule.alert == name and rule.severity is severity), None)
    if found is None:
        raise NotFound(f"there is no rule {name!r} of severity {severity.value}")
    return found


@router.get("/runs/{run}/judged", response_model=JudgedView, summary="How far a run's steps have been judged")
def read_judged(run: RunId, _who: Reader, store: StoreDep) -> ContractResponse:
    """Of its newest attempt."""
    with store.read() as connection:
        number, _ = runs.find_attempt(connection, run)
        step = evaluations.cursor(connection, number)
        return ContractResponse(JudgedView(step=step, last_step=runs.last_step(connection, run)))


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
        return ContractResponse(standing(connection, rules, number))


def standing(connection: Connection, rules: tuple[Rule, ...], attempt_number: int) -> tuple[RuleView, ...]:
    """How ``rules`` stand on an attempt."""
    kept = evaluations.find(connection, attempt_number)
    verdicts, seen = ({}, frozenset()) if kept is None else verdicts_of(kept.memory)
    return view_rules(rules, verdicts, seen, missing_reasons(connection, attempt_number))
