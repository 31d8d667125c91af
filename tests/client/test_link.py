from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rlvitals.link import CAP_EARLY_S, CAP_LATE_S, REFUSED_RETRY_S, Link


def test_waits_grow_and_stay_short_in_a_short_outage() -> None:
    link, now, waits = Link(), 100.0, []
    for _ in range(8):
        link.failed(now, jitter=1.0)
        waits.append(link.next_s - now)
        now = link.next_s
    assert waits[:4] == [0.5, 1.0, 2.0, 3.0]
    assert max(waits) <= CAP_EARLY_S
    assert now < 120


def test_waits_are_long_in_a_long_outage_and_success_ends_them() -> None:
    link = Link()
    link.failed(0.0, jitter=1.0)
    for i in range(20):
        link.failed(10_000.0 + i, jitter=1.0)
    assert link.next_s - 10_019.0 == CAP_LATE_S
    assert not link.well
    link.succeeded()
    assert (link.well, link.next_s) == (True, 0.0)


@given(st.floats(0, 1), st.integers(0, 5000))
def test_a_wait_is_never_longer_than_its_cap_and_never_nothing(jitter: float, failures: int) -> None:
    link = Link(failures=failures, since_s=0.0)
    link.failed(1e6, jitter=jitter)
    assert 0 < link.next_s - 1e6 <= CAP_LATE_S


def test_a_retry_after_is_honoured_and_a_refusal_waits_long() -> None:
    link = Link()
    link.failed(0.0, jitter=0.0, retry_after_s=42.0)
    assert link.next_s == 42.0
    link.failed(50.0, jitter=0.0, refused=True)
    assert link.next_s == 50.0 + REFUSED_RETRY_S / 2
