"""Access tokens: made and shown once, listed, rotated, revoked."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Path, Request
from pydantic import Field

from rlvitals.contract.access import MadeToken, TokenView
from rlvitals_monitor.access import token_book
from rlvitals_monitor.access.token_book import GRACE
from rlvitals_monitor.api.deps import Admin, ContractResponse, NowDep, StoreDep
from rlvitals_monitor.store import tokens

DAYS_MAX = 3_650
GRACE_S_MAX = 30 * 86_400

router = APIRouter(prefix="/api/v1/tokens", tags=["access"])

TokenId = Annotated[str, Path(max_length=32)]
Scope = Annotated[str, Field(max_length=tokens.SCOPES_CHARS_MAX)]


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenAsk:
    """``scopes``: read, ingest, ingest:<project>, operate, admin. Without ``days`` it never expires."""

    name: Annotated[str, Field(min_length=1, max_length=tokens.NAME_CHARS_MAX)]
    scopes: Annotated[list[Scope], Field(min_length=1, max_length=20)]
    days: Annotated[float, Field(gt=0, le=DAYS_MAX, allow_inf_nan=False, strict=True)] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RotationAsk:
    """The old token is good for ``grace_s`` more."""

    grace_s: Annotated[float, Field(ge=0, le=GRACE_S_MAX, allow_inf_nan=False, strict=True)] = (
        GRACE.total_seconds()
    )


@router.get("", response_model=list[TokenView])
def list_tokens(store: StoreDep, _who: Admin, now: NowDep) -> ContractResponse:
    """All of them, also those that are over; the oldest first."""
    with store.read() as conn:
        return ContractResponse([token_book.view(info, now) for info in tokens.list_tokens(conn)])


@router.post("", response_model=MadeToken, status_code=201)
def make_token(store: StoreDep, who: Admin, ask: TokenAsk, now: NowDep) -> ContractResponse:
    """Its secret is in this answer and nowhere else."""
    lasts = None if ask.days is None else timedelta(days=ask.days)
    with store.begin() as conn:
        secret, info = token_book.make(conn, ask.name, ask.scopes, lasts, who.name, now)
    return ContractResponse(MadeToken(token=token_book.view(info, now), secret=secret), 201)


@router.post("/{token}/rotate", response_model=MadeToken, status_code=201)
def rotate_token(
    token: TokenId, request: Request, store: StoreDep, who: Admin, now: NowDep, ask: RotationAsk | None = None
) -> ContractResponse:
    """A new secret with the same name and scopes; the old one ends when the grace is over."""
    grace = timedelta(seconds=(ask or RotationAsk()).grace_s)
    with store.begin() as conn:
        secret, info = token_book.rotate(conn, token, grace, who.name, now)
    if token_book.keep_local(store, request.app.state.settings, token, secret):
        request.app.state.local_token = secret
    return ContractResponse(MadeToken(token=token_book.view(info, now), secret=secret), 201)


@router.delete("/{token}", status_code=204)
def revoke_token(token: TokenId, store: StoreDep, who: Admin, now: NowDep) -> None:
    """It ends at once, and with it the sessions that were signed in to by it."""
    with store.begin() as conn:
        token_book.revoke(conn, token, who.name, now)
