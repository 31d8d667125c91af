from __future__ import annotations

from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from rlvitals.contract.alert import AlertState, Truth
from rlvitals_monitor.alerts.state import INACTIVE, Change, Standing, advance, withdraw
from rlvitals_monitor.rules.evaluate import Evaluation
from rlvitals_monitor.rules.rule import Rule
from tests.monitor.rules.judging import START, a_rule

IDLE, PENDING, FIRING, RESOLVED = AlertState.INACTIVE, AlertState.PENDING, AlertState.FIRING, AlertState.RESOLVED
LETTERS = {"A": Truth.ACTIVE, "I": Truth.INACTIVE, "?": Truth.UNKNOWN}


def at(step: int, seconds: float = 1.0) -> datetime:
    return START + timedelta(seconds=step * seconds)


def verdict(letter: str, step: int, time: datetime) -> Evaluation:
    """A: active, I: inactive and clear, ?: unknown, h: inactive but not clear (between the two levels)."""
    truth = LETTERS.get(letter, Truth.INACTIVE)
    clear = {"A": Truth.INACTIVE, "I": Truth.ACTIVE, "?": Truth.UNKNOWN, "h": Truth.INACTIVE}[letter]
    return Evaluation(truth, "", held=truth is Truth.ACTIVE, clear=clear, since_step=step, since_time=time)


def play(rule: Rule, letters: str, seconds: float = 1.0) -> list[tuple[int, AlertState, AlertState]]:
    """(step, before, after) of every change over steps 1, 2, …"""
    standing, found = INACTIVE, []
    for step, letter in enumerate(letters, start=1):
        time = at(step, seconds)
        standing, change = advance(standing, verdict(letter, step, time), rule, step, time)
        if change is not None:
            found.append((step, change.before, change.after))
    return found


def test_a_rule_without_for_fires_at_once_and_ends_when_it_no_longer_holds() -> None:
    assert play(a_rule("kl.k3 > 1"), "IAAI") == [(2, IDLE, FIRING), (4, FIRING, RESOLVED)]


def test_for_three_steps_is_pending_until_the_third() -> None:
    assert play(a_rule("kl.k3 > 1", hold="3 steps"), "IAAAA") == [(2, IDLE, PENDING), (4, PENDING, FIRING)]


def test_a_pending_alert_that_stops_holding_was_nothing() -> None:
    assert play(a_rule("kl.k3 > 1", hold="3 steps"), "AAIAA") == [
        (1, IDLE, PENDING),
        (3, PENDING, IDLE),
        (4, IDLE, PENDING),
    ]


def test_for_a_time_counts_by_the_steps_own_clock() -> None:
    assert play(a_rule("kl.k3 > 1", hold="5m"), "AAAA", seconds=120) == [(1, IDLE, PENDING), (4, PENDING, FIRING)]


def test_unknown_neither_fires_nor_clears() -> None:
    assert play(a_rule("kl.k3 > 1", hold="2 steps"), "A???A?????I") == [
        (1, IDLE, PENDING),
        (5, PENDING, FIRING),
        (11, FIRING, RESOLVED),
    ]
    assert play(a_rule("kl.k3 > 1"), "????") == []


def test_keep_firing_for_needs_that_many_clear_steps_running() -> None:
    assert play(a_rule("kl.k3 > 1", keep_firing_for="3 steps"), "AIIAII?I") == [
        (1, IDLE, FIRING),
        (8, FIRING, RESOLVED),
    ]


def test_between_the_levels_nothing_clears_and_the_count_begins_anew() -> None:
    assert play(a_rule("kl.k3 > 1", clear="kl.k3 < 0.5", keep_firing_for="2 steps"), "AIhIhII") == [
        (1, IDLE, FIRING),
        (7, FIRING, RESOLVED),
    ]


def test_after_its_end_a_new_alert_may_begin() -> None:
    assert play(a_rule("kl.k3 > 1"), "AIAI") == [
        (1, IDLE, FIRING),
        (2, FIRING, RESOLVED),
        (3, IDLE, FIRING),
        (4, FIRING, RESOLVED),
    ]


def test_a_stronger_twin_keeps_an_alert_from_beginning_and_takes_a_pending_one_back() -> None:
    rule = a_rule("kl.k3 > 1", hold="3 steps")
    active = verdict("A", 1, at(1))
    assert advance(INACTIVE, active, rule, 1, at(1), inhibited=True) == (INACTIVE, None)
    pending, _ = advance(INACTIVE, active, rule, 1, at(1))
    back, change = advance(pending, verdict("A", 2, at(2)), rule, 2, at(2), inhibited=True)
    assert back == INACTIVE
    assert change is not None
    assert (change.before, change.after) == (PENDING, IDLE)


def test_a_stronger_twin_does_not_end_what_fires_already() -> None:
    rule = a_rule("kl.k3 > 1")
    firing, _ = advance(INACTIVE, verdict("A", 1, at(1)), rule, 1, at(1))
    assert advance(firing, verdict("A", 2, at(2)), rule, 2, at(2), inhibited=True) == (firing, None)


def test_an_open_alert_can_be_withdrawn_and_a_closed_one_not() -> None:
    firing, pending = Standing(state=FIRING, opened_step=3), Standing(state=PENDING, opened_step=3)
    assert withdraw(firing, "why") == (INACTIVE, Change(before=FIRING, after=RESOLVED, reason="why"))
    assert withdraw(pending, "why") == (INACTIVE, Change(before=PENDING, after=IDLE, reason="why"))
    assert withdraw(INACTIVE, "why") == (INACTIVE, None)


@given(
    st.text(alphabet="AIh?", max_size=60),
    st.sampled_from(["1 step", "3 steps", "5s"]),
    st.sampled_from(["1 step", "2 steps", "4s"]),
)
def test_changes_form_a_chain_and_every_alert_that_fired_ends_at_most_once(
    letters: str, hold: str, keep: str
) -> None:
    state = IDLE
    for _, before, after in play(a_rule("kl.k3 > 1", hold=hold, keep_firing_for=keep), letters):
        assert before is state
        assert (before, after) in {
            (IDLE, PENDING),
            (IDLE, FIRING),
            (PENDING, FIRING),
            (PENDING, IDLE),
            (FIRING, RESOLVED),
        }
        state = IDLE if after is RESOLVED else after
