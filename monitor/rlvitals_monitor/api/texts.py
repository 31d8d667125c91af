"""Kept completions: of a step, the worst or the newest, one with its tokens, others of its prompt."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query

from rlvitals.contract.view import TextStepView, TextView
from rlvitals_monitor.api.deps import PAGE_DEFAULT, ContractResponse, Limit, Reader, RunId, StoreDep
from rlvitals_monitor.store import texts
from rlvitals_monitor.store.runs import find_attempt

STEP_MAX = 2**53

router = APIRouter(prefix="/api/v1/runs/{run}/texts", tags=["runs"])

Step = Annotated[int | None, Query(ge=-STEP_MAX, le=STEP_MAX)]
Number = Annotated[int, Path(ge=1, le=2**63 - 1, description="`number` of a completion")]


@router.get("", response_model=list[TextView], summary="Kept completions, newest or worst first")
def read_texts(
    run: RunId,
    _who: Reader,
    store: StoreDep,
    step: Step = None,
    attempt: Annotated[str | None, Query(max_length=64, description="default: all of them")] = None,
    worst: Annotated[
        bool, Query(description="broken bytes first, then what was kept as a worst one, then the least reward")
    ] = False,
    limit: Limit = PAGE_DEFAULT,
) -> ContractResponse:
    with store.read() as connection:
        find_attempt(connection, run, attempt)
        found = texts.read_texts(connection, run, step=step, attempt=attempt, worst=worst, limit=limit)
        return ContractResponse(found)


@router.get(
    "/steps", response_model=list[TextStepView], summary="Of which steps completions were kept, latest first"
)
def read_text_steps(
    run: RunId,
    _who: Reader,
    store: StoreDep,
    around: Annotated[
        int | None,
        Query(ge=-STEP_MAX, le=STEP_MAX, description="half of them after this step; default: the latest"),
    ] = None,
    attempt: Annotated[str | None, Query(max_length=64, description="default: the newest")] = None,
    limit: Limit = PAGE_DEFAULT,
) -> ContractResponse:
    with store.read() as connection:
        chosen = find_attempt(connection, run, attempt)
        return ContractResponse(texts.read_text_steps(connection, chosen, around=around, limit=limit))


@router.get("/{number}", response_model=TextView, summary="One completion with what stands behind its tokens")
def read_text(run: RunId, _who: Reader, store: StoreDep, number: Number) -> ContractResponse:
    with store.read() as connection:
        find_attempt(connection, run)
        return ContractResponse(texts.read_text(connection, run, number))


@router.get(
    "/{number}/same-prompt",
    response_model=list[TextView],
    summary="Other completions of the same prompt, nearest first",
    description="Looks among the 2,000 completions that were kept before it and as many after it.",
)
def read_same_prompt(
    run: RunId, _who: Reader, store: StoreDep, number: Number, limit: Limit = PAGE_DEFAULT
) -> ContractResponse:
    with store.read() as connection:
        find_attempt(connection, run)
        text = texts.read_text(connection, run, number)
        return ContractResponse(texts.read_same_prompt(connection, run, text, limit))
