"""Policies chosen while the service runs; each choice is audited."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection

from rlvitals.contract.command import Policy
from rlvitals.contract.view import PolicyView
from rlvitals_monitor.control.policy import Policies, Scope
from rlvitals_monitor.errors import NotFound
from rlvitals_monitor.store import policies as store
from rlvitals_monitor.store.audit import append_audit
from rlvitals_monitor.store.runs import namesakes, no_run, project_of


def in_force(conn: Connection, own: Policies) -> tuple[PolicyView, ...]:
    """The service's own settings with what was chosen over them: the default first, then by scope and name."""
    found = {(view.scope, view.name): view for view in (*own.views(), *store.chosen_policies(conn))}
    order = ("default", *(scope.value for scope in Scope))
    return tuple(sorted(found.values(), key=lambda view: (order.index(view.scope), view.name)))


def choose(conn: Connection, scope: Scope, name: str, policy: Policy, who: str, now: datetime) -> PolicyView:
    """For a run that is yet to come too; raises NotFound where a run's name stands in place of its id."""
    if scope is Scope.RUN and project_of(conn, name) is None and namesakes(conn, name):
        raise no_run(conn, name)
    made = store.choose(conn, scope.value, name, policy, who, now)
    detail = f"{scope.value} {name}: {policy.value}"
    append_audit(conn, at=now, run=_run(scope, name), who=who, what="policy chosen", detail=detail)
    return made


def take_back(conn: Connection, scope: Scope, name: str, who: str, now: datetime) -> None:
    """Raises NotFound where nothing was chosen."""
    if not store.take_back(conn, scope.value, name):
        raise NotFound(f"no policy was chosen for the {scope.value} {name!r}")
    detail = f"{scope.value} {name}"
    append_audit(conn, at=now, run=_run(scope, name), who=who, what="policy taken back", detail=detail)


def _run(scope: Scope, name: str) -> str:
    return name if scope is Scope.RUN else ""
