"""How often somebody may try to sign in. Pure.

Failures make the next try wait, ever longer up to a bound: guessing is slow, and nobody is shut out for good. A
try that comes too early is not looked at, and does not count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import IPv6Address, ip_address

WINDOW = timedelta(minutes=15)
"""Failures that are older are forgotten."""
COUNTED_MAX = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """``free`` failures within `WINDOW` cost nothing; each further one doubles the wait."""

    free: int
    first_s: float
    longest_s: float


OF_AN_ACCOUNT = Pace(free=5, first_s=2.0, longest_s=60.0)
OF_A_SOURCE = Pace(free=20, first_s=2.0, longest_s=300.0)


def wait_s(pace: Pace, failures: Sequence[datetime], now: datetime) -> float:
    """Seconds until the next try may be made. ``failures``: oldest first; those of the future count as of now."""
    counted = [min(at, now) for at in failures if now - at < WINDOW]
    beyond = len(counted) - pace.free
    if beyond < 0:
        return 0.0
    wait = min(pace.longest_s, pace.first_s * 2.0 ** min(beyond, 30))
    return max(0.0, wait - (now - counted[-1]).total_seconds())


def account(name: str) -> str:
    return f"account {name.casefold()}"


def source(host: str) -> str:
    """A network of one customer counts as one: with IPv6 everybody has 2⁶⁴ addresses."""
    try:
        address = ip_address(host)
    except ValueError:
        return f"from {host}"
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return f"from {address.ipv4_mapped}"
        return f"from {IPv6Address(int(address) >> 64 << 64)}/64"
    return f"from {address}"
