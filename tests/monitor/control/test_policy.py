"""What becomes of a proposal: tables of situations, and that nothing ever leaves its bounds."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvitals.contract.alert import AlertState, Proposal
from rlvitals.contract.command import CommandKind, CommandState, Policy
from rlvitals.contract.view import CommandView
from rlvitals_monitor.control.admission import check_argument
from rlvitals_monitor.control.bounds import Limits, bounds_for
from rlvitals_monitor.control.policy import Decision, Policies, decide
from rlvitals_monitor.control.situation import Refusal, Situation, Why
from tests.monitor.planted import ABLE, NOW, a_transition, an_alert, later

KL, LR, PAUSE, STOP = CommandKind.SET_KL_COEF, CommandKind.SCALE_LR, CommandKind.PAUSE, CommandKind.STOP
LIMITS = Limits()
CALM = Situation(capabilities=ABLE, config={"kl_coef": 0.1}, step=120)


def ask(
    kind: CommandKind = KL,
    argument: float | None = 0.05,
    *,
    policy: Policy = Policy.APPROVE,
    at: Situation = CALM,
    limits: Limits = LIMITS,
) -> Decision | Refusal:
    transition = a_transition(an_alert(proposal=Proposal(kind=kind, argument=argument)))
    return decide(transition, at, policy, limits, NOW)


def past(**given: object) -> CommandView:
    """An automatic change that was applied at step 20, an hour ago."""
    fields: dict[str, object] = {
        "id": "c0",
        "run": "r1",
        "kind": KL,
        "state": CommandState.APPLIED,
        "created_at": later(-3600),
        "expires_at": later(3600),
        "argument": 0.08,
        "rule": "kl_pull_dominates",
        "asked_step": 19,
        "step": 20,
        "after": 0.08,
        "done_at": later(-3600),
    }
    return CommandView(**{**fields, **given})  # type: ignore[arg-type]


def after(*history: CommandView) -> Situation:
    return replace(CALM, history=history)


@pytest.mark.parametrize(
    ("policy", "argument", "state"),
    [
        (Policy.OBSERVE, 0.05, CommandState.OBSERVED),
        (Policy.OBSERVE, 0.02, CommandState.OBSERVED),
        (Policy.APPROVE, 0.05, CommandState.PROPOSED),
        (Policy.APPROVE, 0.02, CommandState.PROPOSED),
        (Policy.AUTO, 0.05, CommandState.PENDING),
        (Policy.AUTO, 0.2, CommandState.PENDING),
        (Policy.AUTO, 0.049, CommandState.PROPOSED),
        (Policy.AUTO, 0.21, CommandState.PROPOSED),
    ],
)
def test_the_policy_says_in_which_state_a_command_begins(
    policy: Policy, argument: float, state: CommandState
) -> None:
    decided = ask(argument=argument, policy=policy)
    assert isinstance(decided, Decision)
    assert decided.state is state
    assert decided.command.argument == argument


@pytest.mark.parametrize(
    ("kind", "argument", "why"),
    [
        (KL, None, Why.ARGUMENT),
        (KL, math.nan, Why.ARGUMENT),
        (KL, math.inf, Why.ARGUMENT),
        (KL, -math.inf, Why.ARGUMENT),
        (KL, 0.0, Why.ARGUMENT),
        (KL, -0.0, Why.ARGUMENT),
        (KL, -0.05, Why.ARGUMENT),
        (KL, 0.1, Why.UNCHANGED),
        (KL, 1.5, Why.BOUNDS),
        (KL, 0.00001, Why.BOUNDS),
        (LR, math.nan, Why.ARGUMENT),
        (LR, 1.0, Why.UNCHANGED),
        (LR, 3.0, Why.BOUNDS),
        (PAUSE, math.nan, Why.ARGUMENT),
        (PAUSE, -1.0, Why.ARGUMENT),
        (PAUSE, 7200.0, Why.BOUNDS),
        (STOP, 1.0, Why.ARGUMENT),
    ],
)
def test_an_argument_that_must_not_be_is_refused_by_name_under_every_policy(
    kind: CommandKind, argument: float | None, why: Why
) -> None:
    for policy in Policy:
        refused = ask(kind, argument, policy=policy)
        assert isinstance(refused, Refusal)
        assert refused.why is why


@pytest.mark.parametrize(
    ("situation", "why"),
    [
        (replace(CALM, over=True), Why.RUN_OVER),
        (replace(CALM, capabilities={**ABLE, "set_kl_coef": "beta is 0"}), Why.INCAPABLE),
        (replace(CALM, capabilities={}), Why.INCAPABLE),
        (replace(CALM, config={}), Why.NO_BASELINE),
        (replace(CALM, config={"kl_coef": math.nan}), Why.NO_BASELINE),
        (after(past(state=CommandState.PROPOSED)), Why.ALREADY_OPEN),
        (after(past(state=CommandState.PENDING)), Why.ALREADY_OPEN),
        (after(past(state=CommandState.DELIVERED)), Why.ALREADY_OPEN),
        (after(past(step=71)), Why.COOL_DOWN),
        (after(past(done_at=later(-299))), Why.COOL_DOWN),
        (after(past(state=CommandState.DENIED, step=None, asked_step=100)), Why.COOL_DOWN),
        (after(past(state=CommandState.EXPIRED, step=None, asked_step=100)), Why.COOL_DOWN),
        (after(*(past(id=f"c{i}") for i in range(50))), Why.BUDGET),
    ],
    ids=lambda value: value.value if isinstance(value, Why) else "",
)
def test_a_situation_that_forbids_a_change_is_named(situation: Situation, why: Why) -> None:
    refused = ask(at=situation)
    assert isinstance(refused, Refusal)
    assert refused.why is why
    assert str(refused).startswith(why.value)


@pytest.mark.parametrize(
    "situation",
    [
        after(past(step=70)),
        after(past(done_at=later(-301))),
        after(past(state=CommandState.OBSERVED, step=119, created_at=later(-10), done_at=None)),
        after(past(kind=PAUSE, step=119, done_at=later(-1))),
        replace(after(past(step=500)), step=3),
    ],
    ids=["enough steps", "enough time", "only observed", "another kind", "a run that began anew"],
)
def test_a_change_may_follow_what_has_settled(situation: Situation) -> None:
    assert isinstance(ask(at=situation), Decision)


def test_what_was_only_observed_cools_down_what_is_only_observed() -> None:
    refused = ask(at=after(past(state=CommandState.OBSERVED, step=None, asked_step=100)), policy=Policy.OBSERVE)
    assert isinstance(refused, Refusal)
    assert refused.why is Why.COOL_DOWN


def test_the_capability_refusal_repeats_the_adapters_own_reason() -> None:
    reason = "beta is 0, no reference model was loaded"
    refused = ask(at=replace(CALM, capabilities={**ABLE, "set_kl_coef": reason}))
    assert isinstance(refused, Refusal)
    assert reason in refused.detail


def test_automatic_changes_stop_and_ask_when_their_budget_is_spent() -> None:
    spent = after(*(past(id=f"c{i}", step=i) for i in range(LIMITS.automatic_changes)))
    decided = ask(at=spent, policy=Policy.AUTO)
    assert isinstance(decided, Decision)
    assert decided.state is CommandState.PROPOSED
    assert "5 automatic changes" in decided.note


def test_changes_that_a_person_approved_do_not_use_up_the_automatic_budget() -> None:
    approved = after(*(past(id=f"c{i}", step=i, decided_by="ada") for i in range(9)))
    decided = ask(at=approved, policy=Policy.AUTO)
    assert isinstance(decided, Decision)
    assert decided.state is CommandState.PENDING


def test_many_small_automatic_steps_cannot_leave_the_factor_around_the_users_value() -> None:
    moved = after(past(after=0.06, argument=0.06))
    decided = ask(argument=0.04, at=moved, policy=Policy.AUTO)
    assert isinstance(decided, Decision)
    assert decided.state is CommandState.PROPOSED


def test_the_value_that_the_last_change_left_is_no_change() -> None:
    refused = ask(argument=0.08, at=after(past()))
    assert isinstance(refused, Refusal)
    assert refused.why is Why.UNCHANGED


def test_a_resolved_alert_and_one_without_a_proposal_ask_for_nothing() -> None:
    for transition, why in (
        (a_transition(after=AlertState.RESOLVED), Why.NOT_FIRING),
        (a_transition(after=AlertState.PENDING), Why.NOT_FIRING),
        (a_transition(an_alert(proposal=None)), Why.NOTHING_PROPOSED),
    ):
        refused = decide(transition, CALM, Policy.AUTO, LIMITS, NOW)
        assert isinstance(refused, Refusal)
        assert refused.why is why


def test_an_alert_that_is_routed_hours_later_moves_nothing() -> None:
    late = NOW + timedelta(seconds=LIMITS.proposal_open_s + 1)
    refused = decide(a_transition(), CALM, Policy.AUTO, LIMITS, late)
    assert isinstance(refused, Refusal)
    assert refused.why is Why.EXPIRED


def test_a_pause_without_an_argument_lasts_at_most_the_longest_pause() -> None:
    decided = ask(PAUSE, None, policy=Policy.AUTO)
    assert isinstance(decided, Decision)
    assert decided.command.argument == LIMITS.longest_pause_s


def test_the_same_transition_always_makes_the_same_id() -> None:
    first, second = ask(), ask()
    assert isinstance(first, Decision)
    assert isinstance(second, Decision)
    assert first.command.id == second.command.id


def test_a_rules_policy_goes_before_its_projects_and_that_before_the_default() -> None:
    policies = Policies(rules={"a": Policy.AUTO}, projects={"p": Policy.OBSERVE})
    assert policies.of("a", "p") is Policy.AUTO
    assert policies.of("b", "p") is Policy.OBSERVE
    assert policies.of("b", "q") is Policy.APPROVE


numbers = st.one_of(st.none(), st.floats(), st.floats(min_value=1e-6, max_value=10.0))


@given(
    kind=st.sampled_from(CommandKind),
    argument=numbers,
    own=numbers,
    policy=st.sampled_from(Policy),
    factor=st.floats(min_value=1.0, max_value=2.0),
)
def test_no_command_ever_leaves_its_bounds(
    kind: CommandKind, argument: float | None, own: float | None, policy: Policy, factor: float
) -> None:
    limits = Limits(automatic_factor=factor)
    situation = replace(CALM, config={"kl_coef": own})
    decided = ask(kind, argument, policy=policy, at=situation, limits=limits)
    if isinstance(decided, Refusal):
        return
    value, bounds = decided.command.argument, decided.command.bounds
    if kind in (KL, LR, PAUSE):
        assert value is not None
        assert bounds is not None
        assert math.isfinite(value)
        assert value > 0.0
        assert bounds.allow(value)
    if decided.state is CommandState.PENDING and kind is KL:
        assert own is not None
        assert value is not None
        assert own / factor <= value <= own * factor


@given(argument=numbers, own=numbers)
def test_what_a_person_may_approve_stays_in_the_wide_bounds(argument: float | None, own: float | None) -> None:
    situation = replace(CALM, config={"kl_coef": own})
    if check_argument(Proposal(kind=KL, argument=argument), situation, LIMITS) is None:
        bounds = bounds_for(KL, situation.config, LIMITS, automatic=False)
        assert bounds is not None
        assert argument is not None
        assert bounds.allow(argument)
