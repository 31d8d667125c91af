"""Hours that come again, by the wall clock of a zone, over changes of the clocks."""

from __future__ import annotations

import math
from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvitals_monitor.silences.hours import Hours


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=timezone.utc)  # type: ignore[misc,arg-type]


FRIDAYS = Hours.read("0 22 * * 5", "Europe/Berlin", 4 * 3600)


@pytest.mark.parametrize(
    ("now", "on"),
    [
        (utc(2026, 11, 27, 20, 59, 59), False),
        (utc(2026, 11, 27, 21, 0), True),
        (utc(2026, 11, 28, 0, 59, 59), True),
        (utc(2026, 11, 28, 1, 0), False),
        (utc(2026, 7, 3, 20, 0), True),
    ],
)
def test_they_are_on_from_their_begin_until_just_before_their_end(now: datetime, on: bool) -> None:
    assert (FRIDAYS.at(now) is not None) is on


def test_they_say_when_they_began_and_when_they_come_again() -> None:
    now = utc(2026, 11, 27, 23, 30)
    assert FRIDAYS.at(now) == (utc(2026, 11, 27, 21, 0), utc(2026, 11, 28, 1, 0))
    assert FRIDAYS.after(now) == (utc(2026, 12, 4, 21, 0), utc(2026, 12, 5, 1, 0))


def test_they_last_as_long_on_the_night_on_which_the_clocks_go_back() -> None:
    nights = Hours.read("0 1 * * *", "Europe/Berlin", 2 * 3600)
    began, ends = nights.at(utc(2026, 10, 25, 0, 30)) or (None, None)
    assert (began, ends) == (utc(2026, 10, 24, 23, 0), utc(2026, 10, 25, 1, 0))


@pytest.mark.parametrize("cron", ["30 2 * * *", "10 2 * * 0", "0 2 * * *", "30 1-3 * * *", "*/20 * * * *"])
@pytest.mark.parametrize(
    ("zone", "turned"),
    [
        ("Europe/Berlin", utc(2026, 10, 25, 1)),
        ("Europe/Berlin", utc(2026, 3, 29, 1)),
        ("America/New_York", utc(2026, 11, 1, 6)),
        ("Australia/Lord_Howe", utc(2026, 4, 4, 15)),
    ],
)
def test_they_last_as_long_wherever_in_them_the_clocks_change(cron: str, zone: str, turned: datetime) -> None:
    hours = Hours.read(cron, zone, 3600)
    at, begins = turned - timedelta(days=2), list[datetime]()
    while at < turned + timedelta(days=1):
        at = (hours.after(at) or (turned + timedelta(days=1),))[0]
        begins.append(at)
    for minute in range(-200, 300, 7):
        now = turned + timedelta(minutes=minute)
        on = [begin for begin in begins if begin <= now < begin + timedelta(hours=1)]
        found = hours.at(now)
        assert (found and found[0]) == (max(on) if on else None), now


@given(
    st.integers(1_577_836_800, 2_051_222_400),
    st.sampled_from(["Europe/Berlin", "UTC", "Asia/Tokyo"]),
)
def test_the_next_begin_is_on_when_it_comes(at: int, zone: str) -> None:
    now = datetime.fromtimestamp(at, timezone.utc)
    hours = Hours.read("30 2 * * *", zone, 600)
    coming = hours.after(now)
    assert coming is not None
    assert now < coming[0] <= now + timedelta(days=2)
    assert hours.at(coming[0]) == coming
    assert hours.at(coming[1]) is None


@pytest.mark.parametrize(
    ("cron", "zone", "lasts_s", "named"),
    [
        ("0 22 * *", "UTC", 60, "cron: expected five fields"),
        ("0 22 * * * *", "UTC", 60, "cron: expected five fields"),
        ("61 * * * *", "UTC", 60, "cron: Bad minute"),
        ("0 0 30 2 *", "UTC", 60, "cron: "),
        ("0 22 * * 5", "Mars/Olympus", 60, "zone: "),
        ("0 22 * * 5", "../../etc/passwd", 60, "zone: "),
        ("0 22 * * 5", "", 60, "zone: "),
        ("0 22 * * 5", "UTC", 59, "lasts_s: "),
        ("0 22 * * 5", "UTC", math.nan, "lasts_s: "),
        ("0 22 * * 5", "UTC", math.inf, "lasts_s: "),
        ("0 22 * * 5", "UTC", -math.inf, "lasts_s: "),
    ],
)
def test_what_is_no_time_is_refused_by_name(cron: str, zone: str, lasts_s: float, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        Hours.read(cron, zone, lasts_s)
