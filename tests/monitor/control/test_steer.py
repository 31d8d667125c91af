"""A KL policy on a live run: the dry run's decisions, through the mailbox, once, and across restarts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest

from rlvitals.contract.command import CommandState, Policy
from rlvitals_monitor.control.bounds import Limits
from rlvitals_monitor.control.dry_run import dry_run
from rlvitals_monitor.control.kl_decision import HOLDING_ALERTS, KlSettings, KlWhy
from rlvitals_monitor.control.kl_policies import POLICIES
from rlvitals_monitor.control.policy import Policies
from rlvitals_monitor.rules.loader import load_rules
from rlvitals_monitor.store import steering
from rlvitals_monitor.store.audit import audit_page
from rlvitals_monitor.store.engine import Store
from tests.monitor.batches import after
from tests.monitor.control.live import CALM, LIMITS, PULLED, LiveRun

START = {**CALM, "kl.capped": 0.0}
BEGAN = datetime(2026, 1, 1, tzinfo=timezone.utc)


def story() -> Sequence[Mapping[str, float]]:
    """A start, a KL that is far, one bad number, a token's alert, a pull that dominates."""
    owned = {**PULLED, "kl.grad_top_id_share": 0.99, "kl.grad_max": 500.0}
    far = {**CALM, "kl.capped": 0.5}
    bad = {**CALM, "kl.capped": math.nan, "reward.mean": math.inf}
    return [START] * 5 + [far] * 70 + [bad] + [CALM] * 20 + [owned] * 8 + [PULLED] * 25


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_a_live_run_is_steered_as_the_dry_run_says_step_by_step(sqlite_url: str, name: str) -> None:
    store = Store(sqlite_url)
    rules = [rule for rule in load_rules() if rule.alert in HOLDING_ALERTS]
    live = LiveRun(store=store, rules=rules)
    live.choose(name)
    rows = story()
    for number, values in enumerate(rows):
        live.train(values, 1, number)
    rehearsed = list(
        dry_run(
            POLICIES[name],
            [(n, BEGAN + timedelta(minutes=n), {**row, "kl.coef": 0.1}) for n, row in enumerate(rows)],
            KlSettings(users=0.1, target=0.2),
            rules=rules,
            config={"kl_coef": 0.1, "kl_target": 0.2},
        )
    )
    assert live.made == rehearsed
    assert KlWhy.ALERT in {d.why for d in rehearsed}
    assert len(live.commands()) == len(live.set_by()) >= (0 if name == "article" else 1)
    store.close()


def test_what_it_sets_is_a_command_of_the_policy_that_the_trainer_applies(store: Store) -> None:
    live = LiveRun(store=store)
    live.choose()
    live.rest(PULLED, 48)
    live.train(PULLED, 4, 48)
    (made,) = live.commands()
    assert (made.who, made.rule, made.state, made.argument) == ("policy:guarded", "", CommandState.APPLIED, 0.08)
    assert (made.asked_step, made.step, made.before, made.after) == (49, 50, 0.1, 0.08)
    assert "the KL pull is 2 times the policy's" in made.why
    assert live.coefficient == 0.08


@pytest.mark.parametrize(
    ("policy", "state"), [(Policy.OBSERVE, CommandState.OBSERVED), (Policy.APPROVE, CommandState.PROPOSED)]
)
def test_without_auto_a_person_decides_and_the_trainer_is_left_alone(
    store: Store, policy: Policy, state: CommandState
) -> None:
    live = LiveRun(store=store, policies=Policies(default=policy))
    live.choose()
    live.rest(PULLED, 48)
    live.train(PULLED, 4, 48)
    assert [(c.state, c.argument) for c in live.commands()] == [(state, 0.08)]
    assert live.coefficient == 0.1


def test_the_policys_own_name_may_have_a_policy_as_a_rule_has(store: Store) -> None:
    careful = Policies(default=Policy.AUTO, rules={"policy:guarded": Policy.OBSERVE})
    live = LiveRun(store=store, policies=careful)
    live.choose()
    live.rest(PULLED, 48)
    live.train(PULLED, 4, 48)
    assert {c.state for c in live.commands()} == {CommandState.OBSERVED}


def test_a_run_that_nobody_chose_a_policy_for_is_not_looked_at(store: Store) -> None:
    live = LiveRun(store=store)
    live.train(PULLED, 3)
    live.choose(scope="project")
    with store.begin() as conn:
        assert live.look(conn, 3) != []
    live.choose(steering.NOBODY)
    live.train(PULLED, 3, 3)
    assert [d.step for d in live.made] == [2]


def test_a_runs_own_choice_goes_before_its_projects(store: Store) -> None:
    live = LiveRun(store=store)
    live.choose("article", scope="project")
    live.choose("gradient-guard")
    live.rest(PULLED, 48)
    live.train(PULLED, 4, 48)
    assert [c.who for c in live.commands()] == ["policy:gradient-guard"]


def test_each_step_counts_once_also_where_the_service_died_between(store: Store) -> None:
    one, other = LiveRun(store=store, run="one"), LiveRun(store=store, run="other")
    for live in (one, other):
        live.choose()
        live.rest(PULLED, 46)
    one.train(PULLED, 8, 46)
    for number in range(46, 54):
        # every object anew at each step: all that is known comes out of the database
        other = LiveRun(store=store, run="other", seq=other.seq, coefficient=other.coefficient, made=other.made)
        other.train(PULLED, 1, number)
        with store.begin() as conn:
            assert other.look(conn, number) == []
    assert one.made == other.made
    assert len(one.commands()) == len(other.commands()) == len(one.set_by()) == 1


def test_a_transaction_that_fails_leaves_neither_command_nor_memory(store: Store) -> None:
    live = LiveRun(store=store)
    live.choose()
    live.rest(PULLED, 49)
    with pytest.raises(RuntimeError, match="died"):
        look_and_die(store, live)
    assert live.commands() == []
    with store.begin() as conn:
        live.report(conn, 49, PULLED)
        live.look(conn, 49)
    assert [c.asked_step for c in live.commands()] == [49]


def look_and_die(store: Store, live: LiveRun) -> None:
    with store.begin() as conn:
        live.report(conn, 49, PULLED)
        live.look(conn, 49)
        assert live.made[-1].why is KlWhy.LOWER
        raise RuntimeError("died")


def test_a_policy_that_stopped_stays_so_in_the_next_attempt(store: Store) -> None:
    live = LiveRun(store=store)
    live.choose()
    live.rest(PULLED, 48)
    live.train(PULLED, 2, 48)
    live.rest({**CALM, "reward.mean": 0.1, "kl.capped": 0.6}, 49, 50)
    live.train({**CALM, "reward.mean": 0.1, "kl.capped": 0.6}, 2, 99)
    assert [why for _, why, _ in live.set_by()] == ["lower", "revert"]
    live.attempt = "a2"
    live.train(PULLED, 2, 90)
    assert live.made[-1].why is KlWhy.STOPPED


def test_a_new_attempt_learns_anew_and_waits_a_window(store: Store) -> None:
    live = LiveRun(store=store)
    live.choose()
    live.rest(CALM, 52)
    live.attempt = "a2"
    live.rest(PULLED, 48, 40)
    live.train(PULLED, 4, 88)
    assert [d.why for d in live.made[1:4]] == [KlWhy.WARM_UP, KlWhy.WARM_UP, KlWhy.LOWER]
    assert [step for step, *_ in live.set_by()] == [89]


def test_whoever_chooses_anew_has_looked_so_a_stop_ends(store: Store) -> None:
    live = LiveRun(store=store)
    live.choose()
    live.rest(PULLED, 48)
    live.train(PULLED, 2, 48)
    live.rest({**CALM, "reward.mean": 0.1, "kl.capped": 0.6}, 49, 50)
    live.train({**CALM, "reward.mean": 0.1, "kl.capped": 0.6}, 3, 99)
    assert live.made[-1].why is KlWhy.STOPPED
    live.choose(at=after(7000))
    live.rest(PULLED, 46, 102)
    live.train(PULLED, 4, 148)
    assert live.made[-1].why is not KlWhy.STOPPED
    assert [why for _, why, _ in live.set_by()] == ["lower", "revert", "lower"]


def test_a_policy_that_is_switched_on_in_the_middle_knows_the_course_of_the_run(store: Store) -> None:
    # the reward falls by itself before and after: with the course known the change is not blamed for it
    live = LiveRun(store=store)
    values = [{**PULLED, "reward.mean": 0.9 - 0.002 * n, "kl.capped": 0.2 if n > 4 else 0.0} for n in range(252)]
    with store.begin() as conn:
        live.report(conn, 0, *values[:201])
    live.choose()
    with store.begin() as conn:
        live.look(conn, 200)
        live.obey(conn, 200)
        live.report(conn, 201, *values[201:250])
        live.look(conn, 249)
    live.train(values[250], 1, 250)
    assert live.set_by() == [(200, "lower", 0.08), (250, "lower", 0.064)]


def test_steps_that_came_while_nobody_looked_are_learned_from_and_not_acted_on(store: Store) -> None:
    live = LiveRun(store=store)
    live.choose()
    live.rest(CALM, 65)
    with store.begin() as conn:
        live.report(conn, 65, *([PULLED] * 40), *([CALM] * 60))
        live.look(conn, 164)
    assert live.commands() == []
    assert live.made[-1].why is KlWhy.NO_CAUSE


def test_a_refusal_is_audited_once_and_asked_again_until_it_is_granted(store: Store) -> None:
    live = LiveRun(store=store, limits=replace(LIMITS, cool_down_s=3600.0 * 3))
    live.choose()
    live.rest(PULLED, 48)
    live.train(PULLED, 2, 48)
    live.rest({**PULLED, "kl.pull_ratio": 4.0}, 47, 50)
    live.train({**PULLED, "kl.pull_ratio": 4.0}, 6, 97)
    assert [c.asked_step for c in live.commands()] == [49]
    refused = [d for d in live.made if d.why is KlWhy.REFUSED]
    assert [d.step for d in refused] == [99, 100, 101, 102]
    assert "cool-down" in refused[0].reason
    live.rest({**PULLED, "kl.pull_ratio": 4.0}, 125, 103)
    live.train({**PULLED, "kl.pull_ratio": 4.0}, 3, 228)
    assert [c.asked_step for c in live.commands()][1] == 229
    with store.read() as conn:
        lines, _ = audit_page(conn, limit=500)
    assert [line.what for line in lines].count("not proposed") == 1


def test_a_run_that_cannot_is_refused_by_name_and_nothing_else_happens(store: Store) -> None:
    live = LiveRun(store=store, capable=False)
    live.choose()
    live.rest(PULLED, 48)
    live.train(PULLED, 4, 48)
    assert live.commands() == []
    assert live.made[-1].why is KlWhy.REFUSED
    assert "incapable" in live.made[-1].reason


@pytest.mark.parametrize(
    ("value", "why"),
    [(None, KlWhy.MISSING), (math.nan, KlWhy.NAN), (math.inf, KlWhy.INFINITE), (-math.inf, KlWhy.INFINITE)],
)
def test_what_is_no_number_in_the_store_is_a_hold_of_its_own_name(
    store: Store, value: float | None, why: KlWhy
) -> None:
    live = LiveRun(store=store)
    live.choose()
    row = {name: number for name, number in PULLED.items() if name != "reward.mean"}
    live.rest(row if value is None else {**row, "reward.mean": value}, 60)
    live.train(row if value is None else {**row, "reward.mean": value}, 2, 60)
    assert live.commands() == []
    assert live.made[-1].why is why


def test_a_run_that_does_not_tell_its_coefficient_has_the_one_that_was_applied_last(store: Store) -> None:
    live = LiveRun(store=store, tells=False)
    live.choose()
    live.rest(PULLED, 48)
    live.train(PULLED, 4, 48)
    assert live.set_by() == [(49, "lower", 0.08)]
    assert [d.why for d in live.made[-2:]] == [KlWhy.COOL_DOWN] * 2


def test_an_operator_that_allows_no_automatic_change_is_told_as_the_reason(store: Store) -> None:
    live = LiveRun(store=store, limits=Limits(automatic_factor=1.0))
    live.choose()
    live.train(PULLED, 2)
    assert live.commands() == []
    assert "no change is allowed" in live.made[-1].reason


def test_an_own_target_and_narrower_limits_hold_for_the_run_alone(store: Store) -> None:
    live = LiveRun(store=store, target=None)
    live.choose("target-tracking", target=0.1, factor=1.1, change_steps=60)
    live.rest(CALM, 48)
    live.train(CALM, 4, 48)
    live.rest(CALM, 48, 52)
    live.train(CALM, 10, 100)
    assert live.set_by() == [(49, "raise", 0.11)]
    assert live.made[-1].why is KlWhy.AT_BOUND


def test_a_decision_is_kept_for_people_to_read(store: Store) -> None:
    live = LiveRun(store=store)
    live.choose()
    live.train(START, 5)
    with store.read() as conn:
        attempt = steering.newest_attempt(conn, "r1")
        assert attempt is not None
        kept = steering.find(conn, attempt)
    assert kept is not None
    assert (kept.kl_policy, kept.step, kept.decision["why"]) == ("guarded", 4, "warm-up")


def test_choices_are_listed_replaced_and_cleared(store: Store) -> None:
    with store.begin() as conn:
        steering.choose(conn, "run", "r1", "guarded", {"target": 0.1}, "ann", after(0))
        steering.choose(conn, "run", "r1", "article", {}, "bob", after(1))
        steering.choose(conn, "project", "p1", "guarded", {}, "ann", after(2))
    with store.begin() as conn:
        assert [(c.scope, c.name, c.kl_policy, c.changed_by) for c in steering.choices(conn)] == [
            ("project", "p1", "guarded", "ann"),
            ("run", "r1", "article", "bob"),
        ]
        assert steering.clear(conn, "run", "r1")
        assert not steering.clear(conn, "run", "r1")
        found = steering.choice_for(conn, "r1", "p1")
    assert found is not None
    assert found.scope == "project"
