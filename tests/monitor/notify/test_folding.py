"""The order of a message's items: each cause, then its symptoms."""

from __future__ import annotations

import math

import pytest

from rlvitals.contract.alert import AlertState, Severity
from rlvitals.contract.report import RunInfo
from rlvitals_monitor.diagnosis.table import load_table
from rlvitals_monitor.notify.folding import fold, settle
from rlvitals_monitor.notify.notification import Item
from tests.monitor.planted import a_transition, an_alert

RUN = RunInfo(id="r1", name="tiny run")
CAUSE = next(c for c in load_table().causes if c.leads and c.explains and not c.beside)
LEAD, SYMPTOM = (names[0].partition("/")[0] for names in (CAUSE.leads, CAUSE.explains))


def item(rule: str, *, step: int = 100, after: AlertState = AlertState.FIRING, **given: object) -> Item:
    severity = given.pop("severity", Severity.CRITICAL)
    alert = an_alert(id=rule, rule=rule, severity=severity, fired_step=step, **given)
    return Item(transition=a_transition(alert, id=f"x-{rule}-{after.value}", after=after, step=step), run=RUN)


def told(*items: Item) -> list[tuple[str, str]]:
    return [(one.transition.alert.rule, one.symptom_of) for one in fold(items)]


def test_a_cause_comes_first_and_its_symptom_beneath_it() -> None:
    assert told(item(SYMPTOM, step=99), item(LEAD, step=100)) == [(LEAD, ""), (SYMPTOM, LEAD)]


def test_what_the_table_does_not_know_is_a_cause_of_its_own_and_goes_by_severity() -> None:
    mild = item("mine", severity=Severity.WARNING)
    assert told(mild, item(LEAD), item(SYMPTOM)) == [(LEAD, ""), (SYMPTOM, LEAD), ("mine", "")]


def test_what_is_over_comes_after_what_fires() -> None:
    ended = item("gone", after=AlertState.RESOLVED, resolved_step=120)
    assert told(ended, item("mine", severity=Severity.WARNING)) == [("mine", ""), ("gone", "")]


def test_nothing_is_lost_or_doubled() -> None:
    many = [item(f"rule-{i}") for i in range(7)] + [item(LEAD), item(SYMPTOM)]
    assert sorted(one.transition.id for one in fold(many)) == sorted(one.transition.id for one in many)


def test_what_began_and_ended_in_one_message_is_settled_and_what_began_again_is_not() -> None:
    began, ended = item("mine"), item("mine", after=AlertState.RESOLVED, resolved_step=120)
    assert [one.settled for one in settle([began, ended])] == [True, False]
    assert [one.settled for one in settle([ended, began])] == [False, False]
    assert [one.settled for one in settle([began, item("other", after=AlertState.RESOLVED)])] == [False, False]
    folded = fold([*settle([began, ended]), item("mild", severity=Severity.WARNING)])
    assert [(one.transition.alert.rule, one.settled) for one in folded] == [
        ("mild", False),
        ("mine", True),
        ("mine", False),
    ]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, None])
def test_any_value_may_be_told_of(value: float | None) -> None:
    assert told(item(SYMPTOM, value=value), item(LEAD, value=value)) == [(LEAD, ""), (SYMPTOM, LEAD)]
