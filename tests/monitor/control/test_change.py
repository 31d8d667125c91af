"""How far one command may move what is in force, and all commands together what they began with."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvitals.contract.alert import Proposal
from rlvitals.contract.command import CommandKind, CommandState, Knob, Policy
from rlvitals.contract.view import CommandView
from rlvitals_monitor.control.admission import admit, check_argument
from rlvitals_monitor.control.bounds import Limits
from rlvitals_monitor.control.change import in_force
from rlvitals_monitor.control.policy import Decision, decide
from rlvitals_monitor.control.situation import Refusal, Situation, Why
from tests.monitor.planted import ABLE, NOW, a_transition, an_alert, later

KL, LR, KNOB = CommandKind.SET_KL_COEF, CommandKind.SCALE_LR, CommandKind.SET_KNOB
LIMITS = Limits()
TEMPERATURE = Knob(low=-2.0, high=2.0, value=1.0, max_change=0.5, cool_down_steps=5)
CALM = Situation(capabilities=ABLE, config={"kl_coef": 0.1}, step=120, knobs={"temperature": TEMPERATURE})


def done(kind: CommandKind, argument: float, step: int = 20, **given: object) -> CommandView:
    fields: dict[str, object] = {
        "id": f"{argument} {step}",
        "run": "r1",
        "kind": kind,
        "state": CommandState.APPLIED,
        "created_at": NOW,
        "expires_at": later(60),
        "argument": argument,
        "step": step,
        "knob": "temperature" if kind is KNOB else "",
        **given,
    }
    return CommandView(**fields)  # type: ignore[arg-type]


def ask(
    kind: CommandKind, argument: float | None, *history: CommandView, limits: Limits = LIMITS
) -> Refusal | None:
    asked = Proposal(kind=kind, argument=argument, knob="temperature" if kind is KNOB else "")
    return check_argument(asked, replace(CALM, history=history), limits)


def why(refusal: Refusal | None) -> Why | None:
    return None if refusal is None else refusal.why


@pytest.mark.parametrize(
    ("argument", "expected"),
    [(0.01, None), (0.0099, Why.CHANGE), (1.0, None), (0.00009, Why.BOUNDS), (1.01, Why.BOUNDS)],
)
def test_a_coefficient_moves_by_a_factor_at_most(argument: float, expected: Why | None) -> None:
    assert why(ask(KL, argument)) is expected


def test_the_factor_is_of_what_is_in_force_and_the_bounds_are_of_the_users_own() -> None:
    lowered = done(KL, 0.01, before=0.1, after=0.01)
    assert ask(KL, 0.001, lowered) is None
    assert why(ask(KL, 0.2, lowered)) is Why.CHANGE
    assert why(ask(KL, 0.01, lowered)) is Why.UNCHANGED


@pytest.mark.parametrize("after", [None, math.nan, math.inf, -math.inf])
def test_what_was_not_read_back_as_a_number_is_in_force_nowhere(after: float | None) -> None:
    assert in_force(Proposal(kind=KL), replace(CALM, history=(done(KL, 0.05, after=after),))) == 0.1


def test_factors_on_the_learning_rate_multiply_up_to_the_bounds() -> None:
    assert ask(LR, 2.0) is None
    assert why(ask(LR, 1.5, done(LR, 2.0))) is Why.BOUNDS
    assert ask(LR, 3.9, done(LR, 0.5)) is None
    assert why(ask(LR, 4.1, done(LR, 0.5, before=1e-5, after=5e-6))) is Why.BOUNDS


@given(st.lists(st.floats(0.01, 100), min_size=1, max_size=12))
def test_no_series_of_factors_leads_the_learning_rate_out_of_its_bounds(factors: list[float]) -> None:
    history: list[CommandView] = []
    for number, factor in enumerate(factors):
        if ask(LR, factor, *history) is None:
            history.append(done(LR, factor, step=number * 10))
    total = math.prod(past.argument or 1.0 for past in history)
    assert 0.01 * (1 - 1e-6) <= total <= 2.0 * (1 + 1e-6)


def test_all_commands_at_one_step_together_move_by_a_factor_at_most() -> None:
    tight = Limits(command_factor=4.0, step_factor=4.0)
    here = done(KL, 0.05, step=120, before=0.1, after=0.05)
    assert why(ask(KL, 0.02, here, limits=tight)) is Why.CHANGE
    assert ask(KL, 0.02, replace(here, step=110), limits=tight) is None


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        (1.5, None),
        (0.5, None),
        (1.6, Why.CHANGE),
        (2.1, Why.BOUNDS),
        (1.0, Why.UNCHANGED),
        (math.nan, Why.ARGUMENT),
        (math.inf, Why.ARGUMENT),
        (-math.inf, Why.ARGUMENT),
        (None, Why.ARGUMENT),
    ],
)
def test_a_knob_is_bounded_by_what_the_user_registered(argument: float | None, expected: Why | None) -> None:
    assert why(ask(KNOB, argument)) is expected


def test_a_knob_may_be_set_to_zero_and_below() -> None:
    assert ask(KNOB, 0.0, done(KNOB, 0.5, after=0.5)) is None
    assert ask(KNOB, -0.3, done(KNOB, 0.0, after=0.0)) is None


def test_a_knob_whose_value_nobody_knows_is_not_moved_by_an_unknown_distance() -> None:
    unknown = replace(CALM, knobs={"temperature": replace(TEMPERATURE, value=None)})
    asked = Proposal(kind=KNOB, argument=1.0, knob="temperature")
    assert why(check_argument(asked, unknown, LIMITS)) is Why.NO_BASELINE
    free = replace(CALM, knobs={"temperature": replace(TEMPERATURE, value=None, max_change=None)})
    assert check_argument(asked, free, LIMITS) is None


@pytest.mark.parametrize(
    ("kind", "step", "expected"),
    [(KL, 122, Why.COOL_DOWN), (KL, 123, None), (KNOB, 124, Why.COOL_DOWN), (KNOB, 125, None), (KL, 90, None)],
)
def test_people_too_leave_some_steps_between_two_changes(
    kind: CommandKind, step: int, expected: Why | None
) -> None:
    value = {KL: 0.05, KNOB: 1.2}[kind]
    at = replace(CALM, step=step, history=(done(kind, value, step=120, before=0.1, after=value),))
    asked = Proposal(kind=kind, argument=value * 1.1, knob="temperature" if kind is KNOB else "")
    assert why(admit(asked, at, LIMITS)) is expected


def test_a_run_takes_only_so_many_changes_and_can_still_be_paused() -> None:
    spent = replace(CALM, changes=LIMITS.changes)
    assert why(admit(Proposal(kind=KL, argument=0.05), spent, LIMITS)) is Why.BUDGET
    assert admit(Proposal(kind=CommandKind.PAUSE), spent, LIMITS) is None


def test_a_knob_that_the_run_does_not_have_is_named_with_those_it_has() -> None:
    refused = admit(Proposal(kind=KNOB, argument=1.0, knob="top_p"), CALM, LIMITS)
    assert str(refused) == "incapable: the run has no knob 'top_p'; it has: temperature"


@pytest.mark.parametrize(("wanted", "proposed"), [(0.0005, 0.01), (0.01, 0.01), (0.03, 0.03)])
def test_of_too_large_a_change_a_rule_proposes_as_much_as_one_command_may(wanted: float, proposed: float) -> None:
    transition = a_transition(an_alert(proposal=Proposal(kind=KL, argument=wanted)))
    decided = decide(transition, CALM, Policy.APPROVE, LIMITS, NOW)
    assert isinstance(decided, Decision)
    assert decided.command.argument == pytest.approx(proposed)
    assert (f"{wanted:g} was wanted" in decided.note) is (wanted != proposed)


def test_what_is_beyond_the_users_own_bounds_is_not_cut_but_refused() -> None:
    transition = a_transition(an_alert(proposal=Proposal(kind=KL, argument=1e-9)))
    decided = decide(transition, CALM, Policy.APPROVE, LIMITS, NOW)
    assert isinstance(decided, Refusal)
    assert decided.why is Why.BOUNDS


def test_a_cut_proposal_is_never_applied_by_itself() -> None:
    transition = a_transition(an_alert(proposal=Proposal(kind=KL, argument=0.0005)))
    decided = decide(transition, CALM, Policy.AUTO, LIMITS, NOW)
    assert isinstance(decided, Decision)
    assert decided.state is CommandState.PROPOSED


def test_a_factor_or_a_distance_that_a_person_types_is_not_refused_for_its_last_digit() -> None:
    wide = Limits(approved_kl_up=100.0)
    for number in range(1, 1000):
        now, tenth = float(f"{number}e-3"), float(f"{number}e-4")
        at = replace(CALM, config={"kl_coef": now})
        assert check_argument(Proposal(kind=KL, argument=tenth), at, LIMITS) is None
        assert (
            check_argument(Proposal(kind=KL, argument=now), replace(at, config={"kl_coef": tenth}), wide) is None
        )
        knob = replace(TEMPERATURE, value=now, max_change=0.1)
        turned = Proposal(kind=KNOB, argument=round(now + 0.1, 3), knob="temperature")
        assert check_argument(turned, replace(CALM, knobs={"temperature": knob}), LIMITS) is None
