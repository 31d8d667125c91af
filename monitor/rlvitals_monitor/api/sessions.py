"""Who one is, and where one is signed in."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from sqlalchemy import Connection

from rlvitals.contract.access import AccessKind, EndedSessions, MeView, SessionView
from rlvitals_monitor.api.deps import Anyone, ContractResponse, NowDep, Reader, StoreDep, check_wire
from rlvitals_monitor.auth import ADMIN, Principal
from rlvitals_monitor.errors import Forbidden, NotFound
from rlvitals_monitor.store import sessions, shares, tokens, users
from rlvitals_monitor.store.audit import append_audit
from rlvitals_monitor.store.sessions import Session

router = APIRouter(prefix="/api/v1", tags=["access"])

SessionId = Annotated[str, Path(max_length=32)]
Everybody = Annotated[bool, Query(description="of all people and tokens, for which one must be admin")]


@router.get("/me", response_model=MeView)
def read_me(who: Anyone) -> ContractResponse:
    """Who asks, and what they may."""
    view = MeView(
        kind=who.kind,
        name=who.name,
        may=tuple(sorted(who.granted())),
        role=who.role,
        session=who.session,
        run=who.run,
        view=who.view,
        expires_at=who.expires_at,
    )
    return ContractResponse(view)


@router.get("/sessions", response_model=list[SessionView])
def list_sessions(
    request: Request, store: StoreDep, who: Reader, now: NowDep, everybody: Everybody = False
) -> ContractResponse:
    """Those that are open, the last used first: one's own, or everybody's."""
    _check_everybody(who, everybody)
    idle = request.app.state.settings.session_idle
    with store.read() as conn:
        found = [s for s in sessions.list_open(conn, now, idle) if everybody or _is_own(who, s)]
        return ContractResponse([_view(s, name, who, idle) for s, name in _named(conn, found, now)])


@router.delete("/sessions/{session}", status_code=204)
def end_session(session: SessionId, request: Request, store: StoreDep, who: Reader, now: NowDep) -> None:
    """Its browser is asked to sign in at its next request. Others' may be ended by an admin."""
    check_wire(request)
    with store.begin() as conn:
        found = sessions.find_open(conn, session, now, request.app.state.settings.session_idle)
        if found is None or not (who.may(ADMIN) or _is_own(who, found)):
            raise NotFound(f"there is no open session {session!r} of yours")
        sessions.end(conn, session, now)
        detail = f"{session} of {found.kind.value} {found.subject}"
        append_audit(conn, at=now, who=who.name, what="session ended", detail=detail)


@router.delete("/sessions", response_model=EndedSessions)
def end_sessions(
    request: Request, store: StoreDep, who: Reader, now: NowDep, everybody: Everybody = False
) -> ContractResponse:
    """All but the one that asks: one's own, or everybody's."""
    _check_everybody(who, everybody)
    check_wire(request)
    with store.begin() as conn:
        if everybody:
            ended = sessions.end_everybodys(conn, now, but=who.session)
        else:
            ended = sessions.end_of(conn, who.kind, who.subject, now, but=who.session)
        whose = "everybody's" if everybody else "their own"
        append_audit(conn, at=now, who=who.name, what="sessions ended", detail=f"{ended}, {whose}")
    return ContractResponse(EndedSessions(ended=ended))


def _check_everybody(who: Principal, everybody: bool) -> None:
    if everybody and not who.may(ADMIN):
        raise Forbidden(f"{who.name!r} lacks the scope {ADMIN!r}")


def _is_own(who: Principal, session: Session) -> bool:
    return (session.kind, session.subject) == (who.kind, who.subject)


def _named(conn: Connection, found: list[Session], now: datetime) -> list[tuple[Session, str]]:
    """With whose it is, without those whose right is over."""
    valid = {
        AccessKind.TOKEN: {info.id: info.name for info in tokens.list_tokens(conn) if info.is_valid(now)},
        AccessKind.USER: {user.id: user.name for user in users.list_users(conn) if user.disabled_at is None},
        AccessKind.SHARE: {share.id: share.run for share in shares.list_shares(conn, now) if share.open},
    }
    return [(s, valid[s.kind][s.subject]) for s in found if s.subject in valid[s.kind]]


def _view(session: Session, name: str, who: Principal, idle: timedelta) -> SessionView:
    return SessionView(
        id=session.id,
        kind=session.kind,
        name=name,
        agent=session.agent,
        created_at=session.created_at,
        seen_at=session.seen_at,
        idle_at=session.seen_at + idle,
        expires_at=session.expires_at,
        own=_is_own(who, session),
        current=session.id == who.session,
    )
