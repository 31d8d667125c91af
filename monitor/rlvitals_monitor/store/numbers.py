"""How a double and a time are kept in a row: value and kind, microseconds since the Unix epoch."""

from __future__ import annotations

import math
from datetime import datetime, timedelta, timezone

from rlvitals_monitor.store.tables import NumberKind

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
SECONDS_MAX = 253_402_300_799.0
"""The last second of the year 9999, beyond which a datetime cannot say what time it is."""

_NON_FINITE = {
    int(NumberKind.NAN): math.nan,
    int(NumberKind.POS_INF): math.inf,
    int(NumberKind.NEG_INF): -math.inf,
}


def split(value: float) -> tuple[float, int]:
    """(value, kind) of a double: SQLite would turn a NaN into NULL, so only finite values are kept as such."""
    if math.isfinite(value):
        return value, 0
    if math.isnan(value):
        return 0.0, 1
    return 0.0, 2 if value > 0 else 3


def join(value: float, kind: int) -> float:
    """The inverse of `split`."""
    return value if kind == 0 else _NON_FINITE[kind]


def to_micros(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(microseconds=1)


def from_micros(micros: int) -> datetime:
    return EPOCH + timedelta(microseconds=micros)


def seconds_to_micros(seconds: float) -> int:
    """A client's clock as microseconds; callers have checked `is_time` before."""
    return round(seconds * 1_000_000)


def is_time(seconds: float) -> bool:
    """False for NaN, infinities, and times that no calendar has."""
    return 0.0 <= seconds <= SECONDS_MAX


def maybe_to_micros(moment: datetime | None) -> int | None:
    return None if moment is None else to_micros(moment)


def maybe_from_micros(micros: int | None) -> datetime | None:
    return None if micros is None else from_micros(micros)
