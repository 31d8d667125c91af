"""KL policies at the wheel: which one steers what, what it says now, and what a command did to its run."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field, StrictFloat, StrictInt

from rlvitals.contract.steering import EffectView, SteeredView, SteeringView
from rlvitals.contract.view import Page
from rlvitals_monitor.api.commands import LimitsDep
from rlvitals_monitor.api.deps import (
    ContractResponse,
    LiveDep,
    NowDep,
    Operator,
    Reader,
    RunId,
    StoreDep,
    page_of,
)
from rlvitals_monitor.control import effects, kl_choices

router = APIRouter(prefix="/api/v1", tags=["control"])

_Name = Annotated[str, Field(min_length=1, max_length=128)]


class SteeringScope(str, Enum):
    RUN = "run"
    PROJECT = "project"


@dataclass(frozen=True, slots=True, kw_only=True)
class SteeringChoice:
    """``kl_policy``: ``guarded``, ``target-tracking``, ``gradient-guard``, ``article``, or ``none`` for nobody.

    ``target``: KL per token in nats, in place of the run's own ``kl_target``. ``factor``: the whole way from the
    user's coefficient; ``change_steps``: from one change to the next; neither goes beyond the operator's limits.
    """

    scope: SteeringScope
    name: _Name
    kl_policy: Annotated[str, Field(max_length=32)]
    target: StrictFloat | None = None
    factor: StrictFloat | None = None
    change_steps: StrictInt | None = None


@router.get("/steering", response_model=page_of(SteeringView))
def list_steering(store: StoreDep, _who: Reader) -> ContractResponse:
    """A run's own choice goes before its project's."""
    with store.read() as conn:
        return ContractResponse(Page(items=kl_choices.in_force(conn)))


@router.put("/steering", response_model=SteeringView)
def choose_steering(
    body: SteeringChoice, store: StoreDep, live: LiveDep, who: Operator, now: NowDep
) -> ContractResponse:
    """From the next step on, on all processes of the service. What the policy wants becomes a command like any
    rule's proposal: observed, waiting for approval, or on its way, as `/policies` says of ``policy:<name>``.
    """
    own = {"target": body.target, "factor": body.factor, "change_steps": body.change_steps}
    with store.begin() as conn:
        made = kl_choices.choose(conn, body.scope.value, body.name, body.kl_policy, own, who.name, now)
    if body.scope is SteeringScope.RUN:
        live.publish(body.name)
    return ContractResponse(made)


@router.delete("/steering", response_model=page_of(SteeringView))
def take_steering_back(
    scope: SteeringScope,
    name: Annotated[str, Query(min_length=1, max_length=128)],
    store: StoreDep,
    who: Operator,
    now: NowDep,
) -> ContractResponse:
    """Answers what is chosen now; 404 if nothing was. A run whose project has a choice falls back to that."""
    with store.begin() as conn:
        kl_choices.take_back(conn, scope.value, name, who.name, now)
        return ContractResponse(Page(items=kl_choices.in_force(conn)))


@router.get("/runs/{run}/steering", response_model=SteeredView)
def get_steering(run: RunId, store: StoreDep, limits: LimitsDep, _who: Reader) -> ContractResponse:
    """What steers a run, and what it said of the last step."""
    with store.read() as conn:
        return ContractResponse(kl_choices.steered(conn, run, limits))


@router.get("/commands/{command}/effect", response_model=EffectView)
def get_effect(command: str, store: StoreDep, _who: Reader) -> ContractResponse:
    """The guiding signals 50 steps before and after an applied command, and the verdict of a stated test."""
    with store.read() as conn:
        return ContractResponse(effects.effect_of(conn, command))
