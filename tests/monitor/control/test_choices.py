"""Policies chosen while the service runs: which one holds, from when, and that the choice is audited."""

from __future__ import annotations

import itertools

import pytest
from sqlalchemy import update

from rlvitals.contract.command import CommandState, Policy
from rlvitals.contract.view import CommandView, PolicyView
from rlvitals_monitor.control import choices, kl_choices, mailbox
from rlvitals_monitor.control.policy import Policies, Scope
from rlvitals_monitor.errors import NotFound
from rlvitals_monitor.rules.loader import load_rules
from rlvitals_monitor.store.audit import audit_page
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.tables import runs
from tests.monitor.planted import NOW, a_transition, plant

OBSERVE, APPROVE, AUTO = Policy.OBSERVE, Policy.APPROVE, Policy.AUTO
RULE = "kl_pull_dominates"
RULES = load_rules([])


@pytest.mark.parametrize(("rule", "run"), list(itertools.product(Policy, Policy)))
def test_of_a_rules_and_a_runs_policy_the_more_cautious_one_holds(rule: Policy, run: Policy) -> None:
    policies = Policies(default=AUTO, rules={"r": rule}, runs={"x": run}, projects={"p": AUTO})
    assert policies.of("r", "p", "x") is min(rule, run, key=lambda policy: policy.rank)
    assert policies.of("other", "p", "x") is run
    assert policies.of("r", "p", "other") is rule


def test_without_a_rules_or_a_runs_the_projects_holds_and_else_the_default() -> None:
    policies = Policies(default=OBSERVE, projects={"p": AUTO})
    assert (policies.of("r", "p", "x"), policies.of("r", "q", "x")) == (AUTO, OBSERVE)


def choose(store: Store, scope: Scope, name: str, policy: Policy) -> None:
    with store.begin() as conn:
        choices.choose(conn, scope, name, policy, RULES, "ada", NOW)


def proposed(store: Store, own: Policies) -> CommandState:
    with store.begin() as conn:
        made = mailbox.propose(conn, a_transition(), own, NOW)
    assert isinstance(made, CommandView)
    return made.state


@pytest.mark.parametrize(
    ("scope", "name"), [(Scope.RULE, RULE), (Scope.RUN, "r1"), (Scope.PROJECT, "demo")], ids=lambda v: str(v)
)
def test_a_choice_holds_at_once_over_the_services_own_settings(store: Store, scope: Scope, name: str) -> None:
    plant(store, a_transition())
    choose(store, scope, name, OBSERVE)
    assert proposed(store, Policies(default=AUTO)) is CommandState.OBSERVED


def test_a_runs_name_in_place_of_its_id_is_refused_with_its_id(store: Store) -> None:
    plant(store, a_transition())
    with store.begin() as conn:
        conn.execute(update(runs).values(name="math-7b"))
    with pytest.raises(NotFound, match="no run 'math-7b'; runs of that name have the ids r1"):
        choose(store, Scope.RUN, "math-7b", OBSERVE)
    with store.begin() as conn, pytest.raises(NotFound, match="have the ids r1"):
        kl_choices.choose(conn, "run", "math-7b", "guarded", {}, "ada", NOW)


def test_a_rule_that_does_not_exist_is_refused_with_the_nearest_names(store: Store) -> None:
    with pytest.raises(NotFound, match=r"no rule 'kl_pull_dominate'; the nearest names are kl_pull_dominates"):
        choose(store, Scope.RULE, "kl_pull_dominate", AUTO)
    with pytest.raises(NotFound, match=r"no rule 'policy:garded'; the nearest names are policy:guarded"):
        choose(store, Scope.RULE, "policy:garded", AUTO)
    with store.read() as conn:
        assert choices.in_force(conn, Policies()) == (PolicyView(scope="default", name="", policy=APPROVE),)
        assert audit_page(conn)[0] == ()
    choose(store, Scope.RULE, "policy:guarded", AUTO)


def test_a_run_or_project_that_is_yet_to_come_is_accepted_and_noted(store: Store) -> None:
    plant(store, a_transition())
    noted = {}
    with store.begin() as conn:
        for scope, name in ((Scope.RUN, "r1"), (Scope.RUN, "r2"), (Scope.PROJECT, "demo"), (Scope.PROJECT, "dem")):
            noted[name] = choices.choose(conn, scope, name, OBSERVE, (), "ada", NOW).note
    assert noted["r1"] == noted["demo"] == ""
    assert noted["r2"] == "no run 'r2' has been heard of yet: it holds once there is one"
    assert noted["dem"].endswith("it holds once there is one; the nearest names are demo")


def test_a_choice_for_another_run_changes_nothing_here(store: Store) -> None:
    plant(store, a_transition())
    choose(store, Scope.RUN, "another", AUTO)
    assert proposed(store, Policies()) is CommandState.PROPOSED


def test_what_is_in_force_says_what_was_chosen_and_by_whom(store: Store) -> None:
    own = Policies(rules={RULE: AUTO}, projects={"demo": OBSERVE})
    choose(store, Scope.RULE, RULE, APPROVE)
    choose(store, Scope.RULE, RULE, OBSERVE)
    with store.read() as conn:
        found = choices.in_force(conn, own)
    assert [(view.scope, view.name, view.policy, view.chosen, view.changed_by) for view in found] == [
        ("default", "", APPROVE, False, ""),
        ("project", "demo", OBSERVE, False, ""),
        ("rule", RULE, OBSERVE, True, "ada"),
    ]


def test_a_choice_taken_back_leaves_the_services_own(store: Store) -> None:
    choose(store, Scope.RUN, "r1", OBSERVE)
    with store.begin() as conn:
        choices.take_back(conn, Scope.RUN, "r1", "ben", NOW)
    with store.read() as conn:
        assert choices.in_force(conn, Policies()) == (PolicyView(scope="default", name="", policy=APPROVE),)
        lines, _ = audit_page(conn)
    assert [(line.what, line.who, line.run) for line in lines] == [
        ("policy taken back", "ben", "r1"),
        ("policy chosen", "ada", "r1"),
    ]
    with pytest.raises(NotFound), store.begin() as conn:
        choices.take_back(conn, Scope.RUN, "r1", "ben", NOW)
