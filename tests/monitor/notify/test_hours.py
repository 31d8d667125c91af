"""Quiet hours by the wall clock of a zone, over midnight and over the hour that a summer takes or gives back."""

from __future__ import annotations

from datetime import datetime, time, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvitals.contract.alert import Severity
from rlvitals_monitor.notify.hours import QuietHours

UTC = timezone.utc
BERLIN = ZoneInfo("Europe/Berlin")
NIGHT = QuietHours(start=time(22), end=time(7), zone=BERLIN)
NOON = QuietHours(start=time(12), end=time(14), zone=ZoneInfo("Asia/Shanghai"))


def at(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[arg-type, misc]


@pytest.mark.parametrize(
    ("now", "goes"),
    [
        (at(2026, 1, 10, 20, 59), at(2026, 1, 10, 20, 59)),  # 21:59 in Berlin
        (at(2026, 1, 10, 21, 0), at(2026, 1, 11, 6, 0)),
        (at(2026, 1, 10, 23, 30), at(2026, 1, 11, 6, 0)),
        (at(2026, 1, 11, 5, 59), at(2026, 1, 11, 6, 0)),
        (at(2026, 1, 11, 6, 0), at(2026, 1, 11, 6, 0)),
        (at(2026, 3, 28, 23, 0), at(2026, 3, 29, 5, 0)),  # that night is an hour shorter
        (at(2026, 10, 24, 22, 0), at(2026, 10, 25, 6, 0)),  # and that one an hour longer
        (at(2025, 12, 31, 22, 0), at(2026, 1, 1, 6, 0)),
    ],
)
def test_a_warning_waits_for_the_end_of_the_night(now: datetime, goes: datetime) -> None:
    assert NIGHT.until(now, Severity.WARNING) == goes


def test_hours_within_a_day_and_in_another_zone() -> None:
    assert NOON.until(at(2026, 5, 4, 5, 0), Severity.INFO) == at(2026, 5, 4, 6, 0)
    assert NOON.until(at(2026, 5, 4, 6, 0), Severity.INFO) == at(2026, 5, 4, 6, 0)


def test_critical_breaks_through_unless_it_is_held_too() -> None:
    now = at(2026, 1, 10, 23, 30)
    held = QuietHours(start=time(22), end=time(7), zone=BERLIN, critical_breaks=False)
    assert NIGHT.until(now, Severity.CRITICAL) == now
    assert held.until(now, Severity.CRITICAL) == at(2026, 1, 11, 6, 0)


@pytest.mark.parametrize(
    ("zone", "end", "now", "goes"),
    [
        (BERLIN, time(2, 45), at(2026, 3, 29, 0, 30), at(2026, 3, 29, 1, 0)),
        (BERLIN, time(3, 0), at(2026, 3, 29, 0, 30), at(2026, 3, 29, 1, 0)),
        (ZoneInfo("Australia/Lord_Howe"), time(2, 10), at(2026, 10, 3, 14, 0), at(2026, 10, 3, 15, 30)),
        (BERLIN, time(2, 30), at(2026, 10, 25, 0, 10), at(2026, 10, 25, 0, 30)),
        (BERLIN, time(2, 30), at(2026, 10, 25, 1, 10), at(2026, 10, 25, 1, 10)),
    ],
)
def test_an_end_that_the_clock_jumps_over_is_the_jump_and_one_that_comes_twice_the_first(
    zone: ZoneInfo, end: time, now: datetime, goes: datetime
) -> None:
    hours = QuietHours(start=time(22), end=end, zone=zone)
    assert hours.until(now, Severity.WARNING) == goes


TIMES = st.times().map(lambda moment: moment.replace(second=0, microsecond=0))
ZONES = st.sampled_from(
    ["UTC", "Europe/Berlin", "Asia/Kolkata", "America/St_Johns", "Pacific/Apia", "Asia/Shanghai"]
)


@given(
    start=TIMES,
    end=TIMES,
    zone=ZONES,
    now=st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
)
def test_nothing_waits_into_the_past_or_for_more_than_a_day_and_what_has_waited_goes(
    start: time, end: time, zone: str, now: datetime
) -> None:
    if start == end:
        return
    hours = QuietHours(start=start, end=end, zone=ZoneInfo(zone))
    goes = hours.until(now, Severity.WARNING)
    assert now <= goes <= now + timedelta(hours=25)
    assert hours.until(goes, Severity.WARNING) <= goes + timedelta(
        hours=2
    )  # where a clock is set back over the end
