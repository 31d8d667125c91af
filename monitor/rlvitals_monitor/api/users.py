"""People: added by an invitation, given a role, disabled, removed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import Field

from rlvitals.contract.access import AccessKind, Invitation, Role, UserView
from rlvitals_monitor.access import user_book
from rlvitals_monitor.api.deps import Admin, ContractResponse, NowDep, StoreDep
from rlvitals_monitor.auth import Principal
from rlvitals_monitor.errors import Conflict
from rlvitals_monitor.store import users

router = APIRouter(prefix="/api/v1/users", tags=["access"])

UserId = Annotated[str, Path(max_length=32)]


@dataclass(frozen=True, slots=True, kw_only=True)
class UserAsk:
    name: Annotated[str, Field(min_length=1, max_length=users.NAME_CHARS_MAX)]
    role: Role


@dataclass(frozen=True, slots=True, kw_only=True)
class UserChange:
    """What is left out stays as it is."""

    role: Role | None = None
    disabled: bool | None = None


@router.get("", response_model=list[UserView])
def list_users(store: StoreDep, _who: Admin) -> ContractResponse:
    """By name."""
    with store.read() as conn:
        return ContractResponse([user_book.view(user) for user in users.list_users(conn)])


@router.post("", response_model=Invitation, status_code=201)
def add_user(store: StoreDep, who: Admin, ask: UserAsk, now: NowDep) -> ContractResponse:
    """Answers the link at which the person chooses a password; it is told here and never again."""
    with store.begin() as conn:
        return ContractResponse(user_book.add(conn, ask.name, ask.role, who.name, now), 201)


@router.patch("/{user}", response_model=UserView)
def change_user(user: UserId, store: StoreDep, who: Admin, change: UserChange, now: NowDep) -> ContractResponse:
    """A role counts from the next request on. Who is disabled is signed out everywhere."""
    _not_oneself(who, user)
    with store.begin() as conn:
        if change.role is not None:
            user_book.set_role(conn, user, change.role, who.name, now)
        if change.disabled is not None:
            user_book.set_disabled(conn, user, change.disabled, who.name, now)
        return ContractResponse(user_book.view(user_book.find(conn, user)))


@router.post("/{user}/invite", response_model=Invitation, status_code=201)
def invite_user(user: UserId, store: StoreDep, who: Admin, now: NowDep) -> ContractResponse:
    """Another link, also for a new password; older links are good no more."""
    with store.begin() as conn:
        return ContractResponse(user_book.invite(conn, user, who.name, now), 201)


@router.delete("/{user}", status_code=204)
def remove_user(user: UserId, store: StoreDep, who: Admin, now: NowDep) -> None:
    """What they did keeps their name in the audit."""
    _not_oneself(who, user)
    with store.begin() as conn:
        user_book.remove(conn, user, who.name, now)


def _not_oneself(who: Principal, user: str) -> None:
    if who.kind is AccessKind.USER and who.subject == user:
        raise Conflict("nobody takes away their own rights: ask another admin")
