"""Policies chosen while the service runs; each choice is audited."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from datetime import datetime
from difflib import get_close_matches

from sqlalchemy import Connection

from rlvitals.contract.command import Policy
from rlvitals.contract.view import PolicyView
from rlvitals_monitor.control.kl_policies import POLICIES
from rlvitals_monitor.control.policy import Policies, Scope
from rlvitals_monitor.errors import NotFound
from rlvitals_monitor.rules.rule import Rule
from rlvitals_monitor.store import policies as store
from rlvitals_monitor.store.audit import append_audit
from rlvitals_monitor.store.run_list import read_choices
from rlvitals_monitor.store.runs import namesakes, no_run, project_of


def in_force(conn: Connection, own: Policies) -> tuple[PolicyView, ...]:
    """The service's own settings with what was chosen over them: the default first, then by scope and name."""
    found = {(view.scope, view.name): view for view in (*own.views(), *store.chosen_policies(conn))}
    order = ("default", *(scope.value for scope in Scope))
    return tuple(sorted(found.values(), key=lambda view: (order.index(view.scope), view.name)))


def choose(
    conn: Connection, scope: Scope, name: str, policy: Policy, rules: Iterable[Rule], who: str, now: datetime
) -> PolicyView:
    """For a run or project that is yet to come too, which is noted.

    Raises NotFound for a rule that is none of ``rules``, and where a run's name stands in place of its id.
    """
    note = _look(conn, scope, name, rules)
    made = store.choose(conn, scope.value, name, policy, who, now)
    detail = f"{scope.value} {name}: {policy.value}"
    append_audit(conn, at=now, run=_run(scope, name), who=who, what="policy chosen", detail=detail)
    return replace(made, note=note)


def take_back(conn: Connection, scope: Scope, name: str, who: str, now: datetime) -> None:
    """Raises NotFound where nothing was chosen."""
    if not store.take_back(conn, scope.value, name):
        raise NotFound(f"no policy was chosen for the {scope.value} {name!r}")
    detail = f"{scope.value} {name}"
    append_audit(conn, at=now, run=_run(scope, name), who=who, what="policy taken back", detail=detail)


def _look(conn: Connection, scope: Scope, name: str, rules: Iterable[Rule]) -> str:
    if scope is Scope.RULE:
        known = {rule.alert for rule in rules} | {f"policy:{kl_policy}" for kl_policy in POLICIES}
        if name not in known:
            raise NotFound(f"there is no rule {name[:64]!r}{_nearest(name, known)}")
        return ""
    if scope is Scope.PROJECT:
        projects = read_choices(conn).projects
        return "" if name in projects else _yet_to_come("project", name, projects)
    if project_of(conn, name) is not None:
        return ""
    if namesakes(conn, name):
        raise no_run(conn, name)
    return _yet_to_come("run", name, ())


def _yet_to_come(what: str, name: str, known: Collection[str]) -> str:
    return f"no {what} {name[:64]!r} has been heard of yet: it holds once there is one{_nearest(name, known)}"


def _nearest(name: str, known: Collection[str]) -> str:
    close = get_close_matches(name, known, n=3)
    return f"; the nearest names are {', '.join(close)}" if close else ""


def _run(scope: Scope, name: str) -> str:
    return name if scope is Scope.RUN else ""
