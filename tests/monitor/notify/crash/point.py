"""Where a dispatcher's process is killed."""

from __future__ import annotations

from enum import Enum


class Point(str, Enum):
    """Claim and record are tried on both sides of their commit; at `SENT` the provider has just accepted."""

    CLAIM_OPEN = "claim, before its commit"
    CLAIMED = "claim, after its commit"
    SENT = "send, accepted and not yet answered"
    RECORD_OPEN = "record, before its commit"
    RECORDED = "record, after its commit"


POINTS = tuple(Point)
UNRECORDED = frozenset({Point.SENT, Point.RECORD_OPEN})
"""Where the provider has a message and we have no record of it."""
