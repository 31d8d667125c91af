"""Who may come in and what is kept how long, as the API tells it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rlvitals.contract.access import (
    EndedSessions,
    Invitation,
    MadeShare,
    MadeToken,
    MeView,
    Role,
    SessionView,
    ShareView,
    TokenView,
    UserView,
)
from rlvitals.contract.health import ServiceView
from rlvitals.contract.view import RetentionView
from rlvitals_dashboard.api_wire import TIMEOUT_S, Wire, items, one, segment


class AccessApi(Wire):
    async def me(self) -> MeView:
        return one(MeView, await self._get("/me"))

    async def service(self) -> ServiceView:
        return one(ServiceView, await self._get("/service"))

    async def tokens(self) -> tuple[TokenView, ...]:
        """Also those that are over."""
        return items(TokenView, await self._get("/tokens"))

    async def make_token(self, name: str, scopes: Sequence[str], days: float | None) -> MadeToken:
        body = {"name": name, "scopes": list(scopes), "days": days}
        return one(MadeToken, await self._post("/tokens", body))

    async def rotate_token(self, token: str, grace_s: float) -> MadeToken:
        return one(MadeToken, await self._post(f"/tokens/{segment(token)}/rotate", {"grace_s": grace_s}))

    async def revoke_token(self, token: str) -> None:
        await self._send("DELETE", f"/tokens/{segment(token)}", timeout=TIMEOUT_S)

    async def users(self) -> tuple[UserView, ...]:
        return items(UserView, await self._get("/users"))

    async def add_user(self, name: str, role: Role) -> Invitation:
        return one(Invitation, await self._post("/users", {"name": name, "role": role.value}))

    async def invite_user(self, user: str) -> Invitation:
        """Another link; older ones are good no more."""
        return one(Invitation, await self._post(f"/users/{segment(user)}/invite", {}))

    async def set_role(self, user: str, role: Role) -> UserView:
        return one(UserView, await self._post(f"/users/{segment(user)}", {"role": role.value}, method="PATCH"))

    async def set_disabled(self, user: str, disabled: bool) -> UserView:
        return one(UserView, await self._post(f"/users/{segment(user)}", {"disabled": disabled}, method="PATCH"))

    async def remove_user(self, user: str) -> None:
        await self._send("DELETE", f"/users/{segment(user)}", timeout=TIMEOUT_S)

    async def sessions(self, *, everybody: bool = False) -> tuple[SessionView, ...]:
        """The open ones: one's own, or everybody's, for which one must be admin."""
        return items(SessionView, await self._get("/sessions", everybody=everybody or None))

    async def end_session(self, session: str) -> None:
        await self._send("DELETE", f"/sessions/{segment(session)}", timeout=TIMEOUT_S)

    async def end_sessions(self, *, everybody: bool = False) -> EndedSessions:
        """All but the one that asks."""
        params = {"everybody": True} if everybody else {}
        return one(EndedSessions, await self._send("DELETE", "/sessions", params=params, timeout=TIMEOUT_S))

    async def shares(self) -> tuple[ShareView, ...]:
        """Of all runs, also those that are over."""
        return items(ShareView, await self._get("/shares"))

    async def share(self, run: str, view: str, hours: float) -> MadeShare:
        """``view`` is what stands behind the run in its page's address."""
        return one(MadeShare, await self._post(f"/runs/{segment(run)}/shares", {"view": view, "hours": hours}))

    async def revoke_share(self, share: str) -> None:
        await self._send("DELETE", f"/shares/{segment(share)}", timeout=TIMEOUT_S)

    async def retention(self) -> tuple[RetentionView, ...]:
        """What holds for all first, then every project."""
        return items(RetentionView, await self._get("/retention"))

    async def choose_retention(self, project: str, days: Mapping[str, float | None]) -> RetentionView:
        """``days`` by the names of `RetentionView`; None is for ever."""
        return one(RetentionView, await self._post("/retention", {"project": project, **days}, method="PUT"))

    async def take_retention_back(self, project: str) -> None:
        await self._send("DELETE", "/retention", params={"project": project}, timeout=TIMEOUT_S)
