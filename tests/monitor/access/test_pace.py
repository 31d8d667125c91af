from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from rlvitals_monitor.access.pace import OF_AN_ACCOUNT, WINDOW, Pace, account, source, wait_s

NOW = datetime(2026, 1, 1, 12, tzinfo=timezone.utc)
PACE = Pace(free=3, first_s=2.0, longest_s=60.0)


def failed(*seconds_ago: float) -> list[datetime]:
    return [NOW - timedelta(seconds=s) for s in sorted(seconds_ago, reverse=True)]


@pytest.mark.parametrize(
    ("ago", "wait"),
    [
        ((), 0.0),
        ((0, 0), 0.0),
        ((0, 0, 0), 2.0),
        ((0.5, 9, 9), 1.5),
        ((0, 0, 0, 0), 4.0),
        ((0,) * 8, 60.0),
        ((0,) * 64, 60.0),
        ((61,) + (70,) * 63, 0.0),
        ((0, 901, 901, 901), 0.0),
    ],
)
def test_each_failure_beyond_the_free_ones_doubles_the_wait_up_to_a_bound(
    ago: tuple[float, ...], wait: float
) -> None:
    assert wait_s(PACE, failed(*ago), NOW) == pytest.approx(wait)


def test_failures_of_a_process_whose_clock_is_ahead_make_nobody_wait_longer() -> None:
    assert wait_s(PACE, failed(-3600, -3600, -3600), NOW) == 2.0


def test_nobody_is_shut_out_for_good_whoever_keeps_failing() -> None:
    """Who fails as often as is let shuts an account for a minute at a time, and no longer."""
    at, failures, longest = NOW, list[datetime](), 0.0
    for _ in range(500):
        wait = wait_s(OF_AN_ACCOUNT, [f for f in failures if at - f < WINDOW], at)
        longest, at = max(longest, wait), at + timedelta(seconds=wait)
        failures.append(at)
    assert longest == OF_AN_ACCOUNT.longest_s


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("192.0.2.1", "192.0.2.2", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("2001:db8::1", "2001:db8::ffff:1", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("testclient", "unknown", False),
    ],
)
def test_a_network_of_one_customer_counts_as_one(one: str, other: str, same: bool) -> None:
    assert (source(one) == source(other)) is same


def test_a_name_counts_as_one_however_it_is_written_and_is_never_taken_for_a_source() -> None:
    assert account("Ann") == account("ann")
    assert account("from 192.0.2.1") != source("192.0.2.1")
