"""The life of a command on both databases: asked, decided, handed out, answered, expired, and always audited."""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import rlvitals_monitor
from rlvitals.contract.alert import Proposal
from rlvitals.contract.command import Command, CommandKind, CommandState, Outcome, Policy
from rlvitals.contract.view import AuditView, CommandView
from rlvitals_monitor.control import handover, mailbox
from rlvitals_monitor.control.bounds import Limits
from rlvitals_monitor.control.ledger import locked_subject
from rlvitals_monitor.control.policy import Policies
from rlvitals_monitor.control.situation import Refusal, Why
from rlvitals_monitor.errors import BadRequest, Conflict, NotFound, ServiceError
from rlvitals_monitor.store import commands
from rlvitals_monitor.store.audit import Filter, audit_page
from rlvitals_monitor.store.engine import Store
from tests.monitor.planted import ABLE, NOW, a_transition, an_alert, later, plant, plant_run, plant_transition

KL = CommandKind.SET_KL_COEF
APPROVE, AUTO = Policies(), Policies(default=Policy.AUTO)


@pytest.fixture
def planted(store: Store) -> Store:
    plant(store, a_transition())
    return store


def propose(store: Store, policies: Policies = APPROVE) -> CommandView:
    with store.begin() as conn:
        made = mailbox.propose(conn, a_transition(), policies, NOW)
    assert isinstance(made, CommandView)
    return made


def ask(store: Store, kind: CommandKind = KL, argument: float | None = 0.05, run: str = "r1") -> CommandView:
    with store.begin() as conn:
        return mailbox.request(conn, run, kind, argument, "ada", "looks wrong", NOW)


def approve(store: Store, command: str, argument: float | None = None, after_s: float = 10) -> CommandView:
    with store.begin() as conn:
        return mailbox.approve(conn, command, "ada", later(after_s), argument)


def hand_out(store: Store, after_s: float = 20, run: str = "r1") -> tuple[Command, ...]:
    with store.begin() as conn:
        locked_subject(conn, run)  # as the collector has it when it stores what the receipt is for
        return handover.pending_for(conn, run, later(after_s))


def answer(store: Store, command: str, run: str = "r1", **given: object) -> bool:
    fields: dict[str, object] = {
        "seq": 7,
        "command_id": command,
        "state": CommandState.APPLIED,
        "step": 121,
        "before": 0.1,
        "after": 0.05,
        **given,
    }
    with store.begin() as conn:
        return handover.record_outcome(conn, run, Outcome(**fields), later(30))  # type: ignore[arg-type]


def expire(store: Store, after_s: float) -> list[str]:
    with store.read() as conn:
        runs = commands.overdue_runs(conn, later(after_s))
    for run in runs:
        with store.begin() as conn:
            assert handover.expire(conn, run, later(after_s)) == 1
    return list(runs)


def now_is(store: Store, command: str) -> CommandView:
    with store.read() as conn:
        found = commands.find(conn, command)
    assert found is not None
    return found


def audited(store: Store) -> list[AuditView]:
    """Oldest first."""
    with store.read() as conn:
        lines, _ = audit_page(conn, limit=100)
    return list(lines[::-1])


def what_happened(store: Store) -> list[tuple[str, str]]:
    return [(line.what, line.who) for line in audited(store)]


def test_a_proposal_waits_for_a_person_and_is_not_handed_out(planted: Store) -> None:
    made = propose(planted)
    assert made.state is CommandState.PROPOSED
    assert (made.rule, made.alert_id, made.asked_step) == ("kl_pull_dominates", "a1", 120)
    assert made.bounds is not None
    assert hand_out(planted) == ()
    assert what_happened(planted) == [("proposed", "rule:kl_pull_dominates")]


def test_proposing_the_same_transition_twice_proposes_once(planted: Store) -> None:
    first, second = propose(planted), propose(planted)
    assert first == second
    assert len(audited(planted)) == 1


def test_an_approved_command_is_handed_out_until_its_outcome_arrives(planted: Store) -> None:
    made = propose(planted)
    approve(planted, made.id)
    first, again = hand_out(planted), hand_out(planted, 25)
    assert [c.id for c in first] == [made.id] == [c.id for c in again]
    assert first[0].argument == 0.05
    assert first[0].who == "ada"
    assert now_is(planted, made.id).state is CommandState.DELIVERED
    assert answer(planted, made.id)
    assert hand_out(planted, 40) == ()
    done = now_is(planted, made.id)
    assert (done.state, done.before, done.after, done.step) == (CommandState.APPLIED, 0.1, 0.05, 121)
    assert what_happened(planted) == [
        ("proposed", "rule:kl_pull_dominates"),
        ("approved", "ada"),
        ("delivered", "service"),
        ("applied", "trainer"),
    ]


def test_an_automatic_command_needs_nobody(planted: Store) -> None:
    made = propose(planted, AUTO)
    assert made.state is CommandState.PENDING
    assert [c.id for c in hand_out(planted)] == [made.id]


def test_an_observed_command_is_shown_and_never_handed_out(planted: Store) -> None:
    made = propose(planted, Policies(default=Policy.OBSERVE))
    assert made.state is CommandState.OBSERVED
    assert hand_out(planted) == ()
    with pytest.raises(Conflict, match="is observed"):
        approve(planted, made.id)


def test_a_person_may_approve_another_value_beyond_the_automatic_factor(planted: Store) -> None:
    made = propose(planted)
    approve(planted, made.id, 0.02)
    (command,) = hand_out(planted)
    assert command.argument == 0.02
    assert command.bounds is not None
    assert command.bounds.allow(0.02)


@pytest.mark.parametrize("argument", [0.0, -0.05, math.nan, math.inf, -math.inf, 1e-9, 50.0])
def test_a_person_cannot_approve_a_value_outside_the_bounds(planted: Store, argument: float) -> None:
    made = propose(planted)
    with pytest.raises(BadRequest) as refused:
        approve(planted, made.id, argument)
    assert refused.value.field == "argument"
    assert now_is(planted, made.id).state is CommandState.PROPOSED


def test_a_second_decision_is_told_what_the_first_one_was(planted: Store) -> None:
    made = propose(planted)
    approve(planted, made.id)
    with pytest.raises(Conflict, match="is pending by ada"), planted.begin() as conn:
        mailbox.deny(conn, made.id, "bob", "no", later(11))
    assert [what for what, _ in what_happened(planted)] == ["proposed", "approved"]


def test_a_denied_proposal_is_over(planted: Store) -> None:
    made = propose(planted)
    with planted.begin() as conn:
        denied = mailbox.deny(conn, made.id, "bob", "the run is meant to be so", later(5))
    assert (denied.state, denied.decided_by) == (CommandState.DENIED, "bob")
    assert hand_out(planted) == ()
    with pytest.raises(Conflict, match="is denied by bob"):
        approve(planted, made.id)


def test_a_proposal_cannot_be_approved_after_it_expired(planted: Store) -> None:
    made = propose(planted)
    with pytest.raises(Conflict, match="expired at"):
        approve(planted, made.id, after_s=Limits().proposal_open_s)


def test_of_two_people_who_decide_at_once_one_wins_and_the_other_is_told(planted: Store) -> None:
    made = propose(planted)
    gate = threading.Barrier(2)
    ends: list[str] = []

    def decide(act: Callable[[], object], name: str) -> None:
        gate.wait(10)
        try:
            act()
            ends.append(name)
        except ServiceError as error:
            ends.append(f"conflict {error.status}")

    def deny() -> None:
        with planted.begin() as conn:
            mailbox.deny(conn, made.id, "bob", "no", later(10))

    people = [
        threading.Thread(target=decide, args=(lambda: approve(planted, made.id), "approved")),
        threading.Thread(target=decide, args=(deny, "denied")),
    ]
    for person in people:
        person.start()
    for person in people:
        person.join(20)
    assert sorted(ends) in (["approved", "conflict 409"], ["conflict 409", "denied"])
    assert len(audited(planted)) == 2


def test_of_two_requests_at_once_one_opens_and_the_other_conflicts(planted: Store) -> None:
    gate = threading.Barrier(2)
    ends: list[str] = []

    def one() -> None:
        gate.wait(10)
        try:
            ask(planted, CommandKind.CHECKPOINT, None)
            ends.append("opened")
        except Conflict as error:
            ends.append(error.detail.partition(":")[0])

    people = [threading.Thread(target=one) for _ in range(2)]
    for person in people:
        person.start()
    for person in people:
        person.join(20)
    assert sorted(ends) == [Why.ALREADY_OPEN.value, "opened"]


def test_a_persons_own_command_needs_no_approval_and_ignores_the_rules_cool_down(planted: Store) -> None:
    first = ask(planted)
    hand_out(planted)
    answer(planted, first.id)
    second = ask(planted, argument=0.04)
    assert (second.state, second.decided_by, second.asked_step) == (CommandState.PENDING, "ada", 120)
    assert [c.id for c in hand_out(planted)] == [second.id]


def test_a_pause_carries_its_longest_duration_in_seconds(planted: Store) -> None:
    ask(planted, CommandKind.PAUSE, None)
    (command,) = hand_out(planted)
    assert command.argument == Limits().longest_pause_s


@pytest.mark.parametrize(
    ("kind", "argument", "error"),
    [
        (KL, None, BadRequest),
        (KL, math.nan, BadRequest),
        (KL, 99.0, BadRequest),
        (CommandKind.STOP, 3.0, BadRequest),
        (CommandKind.PAUSE, 1e9, BadRequest),
    ],
)
def test_a_persons_command_is_bounded_too(
    planted: Store, kind: CommandKind, argument: float | None, error: type[ServiceError]
) -> None:
    with pytest.raises(error):
        ask(planted, kind, argument)
    assert audited(planted) == []


def test_a_run_that_cannot_says_why(store: Store) -> None:
    with store.begin() as conn:
        plant_run(conn, capabilities={**ABLE, "stop": "this loop has no stop"})
    with pytest.raises(Conflict, match="this loop has no stop"):
        ask(store, CommandKind.STOP, None)


def test_an_ended_run_takes_no_commands(store: Store) -> None:
    with store.begin() as conn:
        plant_run(conn, phase="finished")
    with pytest.raises(Conflict, match="the run has ended"):
        ask(store, CommandKind.STOP, None)


def test_a_command_to_nobody_and_a_decision_on_nothing_are_not_found(planted: Store) -> None:
    with pytest.raises(NotFound, match="no run 'nobody'"):
        ask(planted, run="nobody")
    with pytest.raises(NotFound, match="no command nothing"):
        approve(planted, "nothing")


def test_a_refused_proposal_is_audited_once_with_its_name(store: Store) -> None:
    missing = a_transition(an_alert(proposal=Proposal(kind=KL, argument=None)))
    plant(store, missing)
    for _ in range(2):
        with store.begin() as conn:
            refused = mailbox.propose(conn, missing, AUTO, NOW)
        assert isinstance(refused, Refusal)
        assert refused.why is Why.ARGUMENT
    (line,) = audited(store)
    assert (line.what, line.who) == ("not proposed", "rule:kl_pull_dominates")
    assert line.detail.startswith("argument: ")


def test_a_rule_without_an_action_leaves_no_trace(store: Store) -> None:
    silent = a_transition(an_alert(proposal=None))
    plant(store, silent)
    with store.begin() as conn:
        mailbox.propose(conn, silent, AUTO, NOW)
    assert audited(store) == []


def test_a_second_alert_cannot_open_a_second_command_of_the_kind(planted: Store) -> None:
    propose(planted)
    other = a_transition(an_alert(id="a2"), id="x9")
    with planted.begin() as conn:
        plant_transition(conn, other)
        refused = mailbox.propose(conn, other, APPROVE, NOW)
    assert isinstance(refused, Refusal)
    assert refused.why is Why.ALREADY_OPEN


def test_an_outcome_counts_once_however_often_it_is_sent(planted: Store) -> None:
    made = ask(planted)
    hand_out(planted)
    assert answer(planted, made.id)
    assert not answer(planted, made.id)
    assert not answer(planted, made.id, state=CommandState.REFUSED, reason="too late")
    assert now_is(planted, made.id).state is CommandState.APPLIED
    assert [what for what, _ in what_happened(planted)] == ["requested", "delivered", "applied"]


def test_an_outcome_of_another_run_or_of_no_command_changes_nothing(planted: Store) -> None:
    with planted.begin() as conn:
        plant_run(conn, "r2")
    made = ask(planted)
    assert not answer(planted, made.id, run="r2")
    assert not answer(planted, "unheard of")
    assert now_is(planted, made.id).state is CommandState.PENDING


def test_a_trainer_cannot_apply_what_nobody_approved(planted: Store) -> None:
    made = propose(planted)
    assert not answer(planted, made.id)
    assert now_is(planted, made.id).state is CommandState.PROPOSED


@pytest.mark.parametrize("state", [CommandState.PENDING, CommandState.PROPOSED, CommandState.DELIVERED])
def test_an_outcome_that_is_no_end_is_ignored(planted: Store, state: CommandState) -> None:
    made = ask(planted)
    assert not answer(planted, made.id, state=state)


@pytest.mark.parametrize(
    ("value", "shown"), [(math.nan, "nan"), (math.inf, "inf"), (-math.inf, "-inf"), (None, "missing")]
)
def test_values_read_back_from_the_trainer_stay_four_different_things(
    planted: Store, value: float | None, shown: str
) -> None:
    made = ask(planted)
    answer(planted, made.id, state=CommandState.REFUSED, before=value, after=value)
    assert repr(now_is(planted, made.id).before) == repr(value)
    assert f"{shown} → {shown}" in audited(planted)[-1].detail


def test_hostile_words_of_a_trainer_are_stored_on_both_databases(planted: Store) -> None:
    made = ask(planted)
    assert answer(planted, made.id, state=CommandState.REFUSED, reason="a\0b\ud800" + "x" * 5000)
    reason = now_is(planted, made.id).reason
    assert reason.startswith("a\ufffdb\ufffdxx")
    assert len(reason) == 1000


def test_what_nobody_acts_on_expires_and_is_not_handed_out(planted: Store) -> None:
    with planted.begin() as conn:
        plant_run(conn, "r2")
    proposed = propose(planted)
    asked = ask(planted, CommandKind.CHECKPOINT, None, run="r2")
    assert hand_out(planted, Limits().delivery_open_s, run="r2") == ()
    assert expire(planted, Limits().delivery_open_s) == ["r2"]
    assert expire(planted, Limits().delivery_open_s) == []
    assert expire(planted, Limits().proposal_open_s) == ["r1"]
    assert now_is(planted, proposed.id).state is CommandState.EXPIRED
    assert "pending" in now_is(planted, asked.id).reason
    assert what_happened(planted)[-2:] == [("expired", "service"), ("expired", "service")]


def test_news_that_it_was_applied_in_time_corrects_an_expiry(planted: Store) -> None:
    made = ask(planted)
    hand_out(planted)
    expire(planted, Limits().delivery_open_s)
    assert answer(planted, made.id)
    assert now_is(planted, made.id).state is CommandState.APPLIED


def test_two_collectors_hand_the_same_command_out_and_record_it_once(planted: Store) -> None:
    made = ask(planted)
    gate = threading.Barrier(2)
    got: list[str] = []

    def collect() -> None:
        gate.wait(10)
        got.extend(command.id for command in hand_out(planted))

    collectors = [threading.Thread(target=collect) for _ in range(2)]
    for collector in collectors:
        collector.start()
    for collector in collectors:
        collector.join(20)
    assert got == [made.id, made.id]
    assert [what for what, _ in what_happened(planted)] == ["requested", "delivered"]


def test_the_audit_can_only_be_added_to() -> None:
    written = re.compile(r"\b(insert|update|delete)\(\s*audit\b|\baudit\.(insert|update|delete)\(")
    package = Path(rlvitals_monitor.__file__).parent
    found = [match.group() for path in package.rglob("*.py") for match in written.finditer(path.read_text())]
    assert found == ["insert(audit"]


def test_commands_and_audit_are_paged_newest_first(planted: Store) -> None:
    made = [propose(planted), ask(planted, CommandKind.STOP, None), ask(planted, CommandKind.CHECKPOINT, None)]
    with planted.read() as conn:
        first, after = commands.page(conn, run="r1", limit=2)
        second, end = commands.page(conn, run="r1", after=after, limit=2)
        only, _ = commands.page(conn, state=CommandState.PROPOSED)
        _, more = audit_page(conn, Filter(run="r1"), limit=2)
        rest, last = audit_page(conn, Filter(run="r1"), after=more, limit=2)
    assert {c.id for c in (*first, *second)} == {c.id for c in made}
    assert (len(first), len(second), end, last) == (2, 1, None, None)
    assert only == (made[0],)
    assert [line.what for line in rest] == ["proposed"]


def test_a_command_comes_back_from_the_store_as_it_went_in(planted: Store) -> None:
    made = propose(planted)
    assert now_is(planted, made.id) == made
    approved = approve(planted, made.id)
    assert now_is(planted, made.id) == approved
    assert replace(approved, state=made.state) != made
