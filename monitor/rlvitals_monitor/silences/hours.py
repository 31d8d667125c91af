"""Hours that come again: when they begin as a cron expression by the clock of a zone, and how long they last."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

LASTS_MIN_S, LASTS_MAX_S = 60.0, 7 * 24 * 3600.0
CRON_CHARS_MAX = 100
_FIELDS = 5


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
        next_minute = now.replace(second=0, microsecond=0) + timedelta(minutes=1)
        began = next(CronSim(self.cron, next_minute.astimezone(ZoneInfo(self.zone)), reverse=True), None)
        span = None if began is None else self._span(began)
        return span if span is not None and span[0] <= now < span[1] else None

    def after(self, now: datetime) -> tuple[datetime, datetime] | None:
        """The next hours that begin later than ``now``; None if none ever do."""
        begins = next(CronSim(self.cron, now.astimezone(ZoneInfo(self.zone))), None)
        return None if begins is None else self._span(begins)

    def _span(self, begins: datetime) -> tuple[datetime, datetime]:
        start = begins.astimezone(timezone.utc)
        return start, start + timedelta(seconds=self.lasts_s)
