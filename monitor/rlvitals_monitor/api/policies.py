"""Who may steer: what the service's settings say, and what was chosen over them while it runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, cast

from fastapi import APIRouter, Depends, Query, Request
from pydantic import Field

from rlvitals.contract.command import Policy
from rlvitals.contract.view import Page, PolicyView
from rlvitals_monitor.api.deps import Admin, ContractResponse, NowDep, Reader, StoreDep, page_of
from rlvitals_monitor.api.rules import RulesDep
from rlvitals_monitor.control import choices
from rlvitals_monitor.control.policy import Policies, Scope

router = APIRouter(prefix="/api/v1", tags=["control"])

NAME_CHARS_MAX = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """``name`` is a project's, a rule's (``policy:guarded`` for a KL policy), or a run's id."""

    scope: Scope
    name: Annotated[str, Field(min_length=1, max_length=NAME_CHARS_MAX)]
    policy: Policy


async def get_policies(request: Request) -> Policies:
    return cast(Policies, request.app.state.policies)


PoliciesDep = Annotated[Policies, Depends(get_policies)]


@router.get("/policies", response_model=page_of(PolicyView))
def list_policies(store: StoreDep, _who: Reader, policies: PoliciesDep) -> ContractResponse:
    """Of a run's and a rule's the more cautious one holds; without these the project's, else the default."""
    with store.read() as conn:
        return ContractResponse(Page(items=choices.in_force(conn, policies)))


@router.put("/policies", response_model=PolicyView)
def choose_policy(body: Choice, store: StoreDep, who: Admin, rules: RulesDep, now: NowDep) -> ContractResponse:
    """From now on, on all processes of the service. It stays over the service's own settings until taken back.

    404 for a rule that is not in force. A run or project may be yet to come; ``note`` says so.
    """
    with store.begin() as conn:
        return ContractResponse(choices.choose(conn, body.scope, body.name, body.policy, rules, who.name, now))


@router.delete("/policies", response_model=page_of(PolicyView))
def take_policy_back(
    scope: Scope,
    name: Annotated[str, Query(min_length=1, max_length=NAME_CHARS_MAX)],
    store: StoreDep,
    who: Admin,
    now: NowDep,
    policies: PoliciesDep,
) -> ContractResponse:
    """What the service's own settings say holds again. Answers what is in force now; 404 if nothing was chosen."""
    with store.begin() as conn:
        choices.take_back(conn, scope, name, who.name, now)
        return ContractResponse(Page(items=choices.in_force(conn, policies)))
