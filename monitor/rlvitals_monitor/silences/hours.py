"""Hours that come again: when they begin as a cron expression by the clock of a zone, and how long they last."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

LASTS_MIN_S, LASTS_MAX_S = 60.0, 7 * 24 * 3600.0
CRON_CHARS_MAX = 100
_FIELDS = 5
SET_BACK = timedelta(hours=2)
"""No clock is set back further, nor for what it shows then looked at longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hours:
    """``cron``: minute, hour, day of month, month, day of week, by the wall clock of ``zone``; ``lasts_s`` in
    seconds of real time, also where the clocks change meanwhile.
    """

    cron: str
    zone: str
    lasts_s: float

    @classmethod
    def read(cls, cron: str, zone: str, lasts_s: float) -> Hours:
        """Raises ValueError that says what was expected."""
        if not LASTS_MIN_S <= lasts_s <= LASTS_MAX_S:
            raise ValueError(f"lasts_s: expected {LASTS_MIN_S:g} to {LASTS_MAX_S:g} seconds, got {lasts_s}")
        try:
            known = ZoneInfo(zone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise ValueError(f"zone: expected a time zone as Europe/Berlin or UTC, got {zone[:60]!r}") from None
        fields = cron.split()
        if len(fields) != _FIELDS or len(cron) > CRON_CHARS_MAX:
            raise ValueError(f'cron: expected five fields as "0 22 * * 5", got {cron[:CRON_CHARS_MAX]!r}')
        try:
            next(CronSim(" ".join(fields), datetime(2024, 1, 1, tzinfo=known)))
        except CronSimError as error:
            raise ValueError(f"cron: {error}, in {cron!r}") from None
        except StopIteration:
            raise ValueError(f"cron: no day is ever {cron!r}") from None
        return cls(cron=" ".join(fields), zone=zone, lasts_s=float(lasts_s))

    def at(self, now: datetime) -> tuple[datetime, datetime] | None:
        """The begin and end, UTC, of the hours that ``now`` is in; None between them."""
        zone = ZoneInfo(self.zone)
        minute = now.replace(second=0, microsecond=0) + timedelta(minutes=1)
        local, before = minute.astimezone(zone), (minute - SET_BACK).astimezone(zone)
        begins = [self._begin(local, now)]
        if before.utcoffset() != local.utcoffset():
            # Where the clock was set back, it shows a time before that of a begin which is over.
            begins.append(self._begin(local + SET_BACK, now))
        known = [begin for begin in begins if begin is not None]
        span = self._span(max(known)) if known else None
        return span if span is not None and now < span[1] else None

    def _begin(self, local: datetime, now: datetime) -> datetime | None:
        """The last begin before ``local`` that is not after ``now``, in UTC."""
        told = (begin.astimezone(timezone.utc) for begin in CronSim(self.cron, local, reverse=True))
        return next((begin for begin in told if begin <= now), None)

    def after(self, now: datetime) -> tuple[datetime, datetime] | None:
        """The next hours that begin later than ``now``; None if none ever do."""
        begins = next(CronSim(self.cron, now.astimezone(ZoneInfo(self.zone))), None)
        return None if begins is None else self._span(begins)

    def _span(self, begins: datetime) -> tuple[datetime, datetime]:
        start = begins.astimezone(timezone.utc)
        return start, start + timedelta(seconds=self.lasts_s)
