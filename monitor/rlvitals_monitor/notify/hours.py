"""Quiet hours: local times of day in which messages wait, unless they are critical. Pure; `now` is given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone
from zoneinfo import ZoneInfo

from rlvitals.contract.alert import Severity


@dataclass(frozen=True, slots=True, kw_only=True)
class QuietHours:
    """From ``start`` to ``end`` by the wall clock of ``zone``, over midnight where the end comes first."""

    start: time
    end: time
    zone: ZoneInfo
    critical_breaks: bool = True

    def until(self, now: datetime, severity: Severity) -> datetime:
        """When a message of this severity may go: ``now``, or the end of the quiet hours that ``now`` is in."""
        if severity is Severity.CRITICAL and self.critical_breaks:
            return now
        local = now.astimezone(self.zone)
        if not self._is_quiet(local.time()):
            return now
        over_midnight = self.end <= self.start and local.time() >= self.start
        return max(now, self._moment(local.date() + timedelta(days=over_midnight)))

    def _is_quiet(self, at: time) -> bool:
        if self.start < self.end:
            return self.start <= at < self.end
        return at >= self.start or at < self.end

    def _moment(self, day: date) -> datetime:
        """The end on that day. Where the clock jumps over it, the moment of the jump's other side."""
        moment = datetime.combine(day, self.end, tzinfo=self.zone).astimezone(timezone.utc)
        over = moment.astimezone(self.zone).replace(tzinfo=None) - datetime.combine(day, self.end)
        if not over:
            return moment
        # Read by the clock before the jump, it is as long after the jump as the end would have been.
        jumped = (moment - over).astimezone(self.zone).utcoffset()
        return _first(moment - over, moment, lambda at: at.astimezone(self.zone).utcoffset() != jumped)


def _first(low: datetime, high: datetime, holds: Callable[[datetime], bool]) -> datetime:
    """The first whole second above ``low`` at which it ``holds``, as it does at ``high``."""
    while high - low > timedelta(seconds=1):
        middle = low + timedelta(seconds=(high - low) // timedelta(seconds=2))
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
