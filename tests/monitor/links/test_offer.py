"""What a link still offers, by what became of the thing it is about."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from rlvitals.contract.alert import Alert, AlertState
from rlvitals.contract.command import CommandState
from rlvitals_monitor.auth import Principal
from rlvitals_monitor.links.act import Voice, voice_of
from rlvitals_monitor.links.offer import Standing, weigh
from rlvitals_monitor.store.links import LASTS, LinkAct
from tests.monitor.links.planted import COMMAND, ON_COMMANDS, RUN, a_link, an_offer
from tests.monitor.planted import NOW, an_alert, later

OPERATOR = Principal(name="ann", scopes=frozenset({"operate"}))
READER = Principal(name="rob", scopes=frozenset({"read"}))


@pytest.mark.parametrize("act", LinkAct)
def test_a_fresh_link_is_open_until_just_before_it_expires(act: LinkAct) -> None:
    far = replace(COMMAND, expires_at=NOW + 2 * LASTS)
    assert an_offer(act, command=far, now=NOW).standing is Standing.OPEN
    assert an_offer(act, command=far, now=NOW + LASTS).standing is Standing.EXPIRED


@pytest.mark.parametrize("act", LinkAct)
def test_a_used_link_is_used_also_when_it_is_expired(act: LinkAct) -> None:
    offer = an_offer(act, now=NOW + LASTS, used_at=NOW, used_by="ann")
    assert offer.standing is Standing.USED


@pytest.mark.parametrize("argument", [0.06, math.nan, math.inf, -math.inf, None])
@pytest.mark.parametrize("act", ON_COMMANDS)
def test_a_command_that_was_changed_is_refused(act: LinkAct, argument: float | None) -> None:
    link = a_link(act)
    changed = replace(COMMAND, argument=argument)
    assert weigh(link, RUN, changed, None, NOW).standing is Standing.CHANGED
    assert weigh(link, RUN, None, None, NOW).standing is Standing.CHANGED


@pytest.mark.parametrize("state", [s for s in CommandState if s is not CommandState.PROPOSED])
def test_a_command_that_is_decided_needs_nobody(state: CommandState) -> None:
    offer = an_offer(LinkAct.APPROVE, command=replace(COMMAND, state=state, decided_by="bob"))
    assert (offer.standing, offer.reason) == (Standing.OVER, f"{state.value} by bob")


def test_a_command_that_expired_needs_nobody() -> None:
    offer = an_offer(LinkAct.APPROVE, now=later(600))
    assert (offer.standing, offer.reason) == (Standing.OVER, "expired")


@pytest.mark.parametrize(
    ("alert", "standing"),
    [
        (an_alert(value=math.nan), Standing.OPEN),
        (an_alert(state=AlertState.RESOLVED), Standing.OVER),
        (an_alert(acknowledged_by="bob"), Standing.OVER),
    ],
)
def test_an_alert_is_looked_after_by_one_while_it_is_open(alert: Alert, standing: Standing) -> None:
    assert an_offer(LinkAct.ACKNOWLEDGE, alert=alert).standing is standing
    assert an_offer(LinkAct.SILENCE, alert=alert).standing is Standing.OPEN


@pytest.mark.parametrize("act", LinkAct)
def test_who_is_signed_in_and_may_operate_acts_by_name(act: LinkAct) -> None:
    assert voice_of(an_offer(act), OPERATOR, ()) == Voice(who="ann", named=True)
    assert voice_of(an_offer(act), READER, ()) is None
    assert voice_of(an_offer(act), None, ()) is None


@pytest.mark.parametrize("act", LinkAct)
def test_who_is_not_has_one_voice_without_a_name_where_that_is_allowed(act: LinkAct) -> None:
    for visitor in (None, READER):
        assert voice_of(an_offer(act), visitor, (act,)) == Voice(who="a link in team", named=False)


def test_where_two_people_must_approve_a_voice_without_a_name_is_not_even_asked_for() -> None:
    two = replace(COMMAND, persons=2)
    assert voice_of(an_offer(LinkAct.APPROVE, command=two), None, tuple(LinkAct)) is None
    assert voice_of(an_offer(LinkAct.APPROVE, command=two), OPERATOR, ()) == Voice(who="ann", named=True)
