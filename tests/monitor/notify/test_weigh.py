"""Whether a delivery goes, waits or is dropped: pure."""

from __future__ import annotations

from datetime import time
from zoneinfo import ZoneInfo

import pytest

from rlvitals.contract.alert import AlertState, Severity
from rlvitals_monitor.matcher import Matcher
from rlvitals_monitor.notify.hours import QuietHours
from rlvitals_monitor.notify.weigh import SILENCE_LOOK, Drop, Send, Wait, weigh
from rlvitals_monitor.silences.silence import Silence
from rlvitals_monitor.store.due import Due, Told
from tests.monitor.planted import NOW, later

HOUR = Silence(
    id="s1",
    matchers=(Matcher.read("rule=*"),),
    starts_at=NOW,
    ends_at=later(3600),
    created_at=NOW,
    who="ada",
    why="I know",
)
NOON = QuietHours(start=time(10), end=time(13), zone=ZoneInfo("UTC"))


def due(**given: object) -> Due:
    fields: dict[str, object] = {
        "id": "d1",
        "transition": "x1",
        "alert": "a1",
        "run": "r1",
        "purpose": "news",
        "was_silenced": False,
        "severity": Severity.WARNING,
        "after": AlertState.FIRING,
        "is_firing": True,
        "acknowledged_by": "",
    }
    return Due(**{**fields, **given})  # type: ignore[arg-type]


def over(**given: object) -> Due:
    return due(after=AlertState.RESOLVED, is_firing=False, **given)


def test_news_goes_at_once_also_of_what_is_over_or_acknowledged_meanwhile() -> None:
    for one in (due(), due(is_firing=False), due(acknowledged_by="ada")):
        assert weigh(one, Told.NO, None, None, NOW) == Send()


def test_a_silenced_alert_waits_and_says_who_and_why() -> None:
    found = weigh(due(), Told.NO, HOUR, None, NOW)
    assert found == Wait(
        until=NOW + SILENCE_LOOK, why="silenced by ada until 2026-05-04 13:00 UTC: I know", silenced=True
    )
    assert weigh(due(), Told.NO, HOUR, None, later(3599)) == Wait(
        until=later(3600), why="silenced by ada until 2026-05-04 13:00 UTC: I know", silenced=True
    )


def test_after_its_silence_it_goes_only_if_it_still_fires() -> None:
    assert weigh(due(was_silenced=True), Told.NO, None, None, NOW) == Send()
    assert isinstance(weigh(due(was_silenced=True, is_firing=False), Told.NO, None, None, NOW), Drop)


def test_a_recovery_is_for_those_who_heard_of_the_beginning() -> None:
    assert weigh(over(), Told.YES, None, None, NOW) == Send()
    assert weigh(over(), Told.NO, None, None, NOW) == Drop(why="nobody was told here that it fires")
    assert isinstance(weigh(over(), Told.NOT_YET, None, None, NOW), Wait)


def test_within_a_silence_a_recovery_waits_too() -> None:
    assert isinstance(weigh(over(), Told.YES, HOUR, None, NOW), Wait)


@pytest.mark.parametrize("purpose", ["reminder", "escalation"])
def test_a_reminder_or_an_escalation_is_only_of_what_fires_and_nobody_looks_after(purpose: str) -> None:
    assert weigh(due(purpose=purpose), Told.YES, None, None, NOW) == Send()
    assert weigh(due(purpose=purpose, is_firing=False), Told.YES, None, None, NOW) == Drop(
        why="it does not fire any more"
    )
    assert weigh(due(purpose=purpose, acknowledged_by="ada"), Told.YES, None, None, NOW) == Drop(
        why="acknowledged by ada"
    )


def test_of_a_run_that_has_ended_nobody_is_reminded_but_those_who_did_not_hear_yet_do() -> None:
    ended = weigh(due(purpose="reminder", is_over=True), Told.YES, None, None, NOW)
    assert ended == Drop(why="its run has ended, so there is nothing to remind of")
    for purpose in ("news", "escalation"):
        assert weigh(due(purpose=purpose, is_over=True), Told.YES, None, None, NOW) == Send()


def test_in_quiet_hours_all_but_critical_alerts_wait_for_their_end() -> None:
    for one in (due(), over(), due(purpose="reminder")):
        assert weigh(one, Told.YES, None, NOON, NOW) == Wait(
            until=later(3600), why="quiet hours until 2026-05-04 13:00 UTC"
        )
    assert weigh(due(severity=Severity.CRITICAL), Told.YES, None, NOON, NOW) == Send()
