"""``rlvitals control policy``: who may steer, shown and chosen while the service runs."""

from __future__ import annotations

import argparse
import sys
from datetime import datetime, timezone
from typing import Any

from rlvitals.contract.command import Policy
from rlvitals.screen import print_report, printable
from rlvitals_monitor.alerts.rulebook import RuleBook
from rlvitals_monitor.alerts.settings import RuleSettings
from rlvitals_monitor.control import choices
from rlvitals_monitor.control.local_store import command_line_user, on_store
from rlvitals_monitor.control.policy import Scope
from rlvitals_monitor.control.settings import ControlSettings
from rlvitals_monitor.settings import Settings
from rlvitals_monitor.store.engine import Store


def add(actions: Any) -> None:
    about = "who may steer: show it, choose it for a project, a rule or a run, or take a choice back"
    asked = actions.add_parser("policy", help=about, description=about + ". A running service follows at once.")
    verbs = asked.add_subparsers(dest="verb", required=True)
    verbs.add_parser("list", help="what is in force").set_defaults(act=_list)
    choose = verbs.add_parser("set", help="choose one")
    choose.add_argument("scope", choices=[scope.value for scope in Scope])
    choose.add_argument("name", help="a project, a rule (policy:guarded for a KL policy), or a run's id")
    choose.add_argument("policy", choices=[policy.value for policy in Policy])
    choose.set_defaults(act=_choose)
    back = verbs.add_parser("unset", help="take a choice back: the service's own settings hold again")
    back.add_argument("scope", choices=[scope.value for scope in Scope])
    back.add_argument("name")
    back.set_defaults(act=_take_back)


def _list(_told: argparse.Namespace) -> int:
    return on_store(_shown)


def _choose(told: argparse.Namespace) -> int:
    def act(store: Store) -> int:
        now = _now()
        rules = RuleBook.of(RuleSettings(), now, store).refresh(now)
        with store.begin() as conn:
            scope, policy = Scope(told.scope), Policy(told.policy)
            made = choices.choose(conn, scope, told.name, policy, rules, command_line_user(), now)
        if made.note:
            sys.stderr.write(f"rlvitals control: {printable(made.note)}\n")
        return _shown(store)

    return on_store(act)


def _take_back(told: argparse.Namespace) -> int:
    def act(store: Store) -> int:
        with store.begin() as conn:
            choices.take_back(conn, Scope(told.scope), told.name, command_line_user(), _now())
        return _shown(store)

    return on_store(act)


def _shown(store: Store) -> int:
    with store.read() as conn:
        found = choices.in_force(conn, ControlSettings(policy=Settings().policy).policies)
    rows = [
        f"{view.scope:8} {printable(view.name) or '-':32} {view.policy.value:8} "
        + (f"chosen by {printable(view.changed_by)}" if view.chosen else "the service's own")
        for view in found
    ]
    return print_report("\n".join(rows) + "\n", "rlvitals control", 0)


def _now() -> datetime:
    return datetime.now(timezone.utc)
