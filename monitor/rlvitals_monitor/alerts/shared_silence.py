"""Whether runs fell silent together: what they share may be at fault, the service's own network first. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from rlvitals_monitor.store import pulse

RUNS_AT_LEAST = 3
"""Two may fall silent within a minute by chance."""
WITHIN = pulse.LATE_AFTER
ADVICE = (
    "{count} runs fell silent within {span} and none is heard: it may be the service's own network. Look at that "
    "first, then at what the runs share. A trainer that lives goes on training, and what it keeps follows later."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedSilence:
    """``runs`` of them had their last words between ``first`` and ``last``, and since then nobody was heard."""

    runs: int
    first: datetime
    last: datetime

    def holds(self, seen_at: datetime) -> bool:
        return self.first <= seen_at <= self.last

    @property
    def advice(self) -> str:
        return ADVICE.format(count=self.runs, span=pulse.span(self.last - self.first))


def shared_silence(last_words: Iterable[datetime], now: datetime) -> SharedSilence | None:
    """``last_words`` of all runs that are not over. None while one of them is heard, or where only a few fell
    silent at once.
    """
    words = sorted(last_words)
    if not words or now - words[-1] <= pulse.LATE_AFTER:
        return None
    group = [one for one in words if words[-1] - one <= WITHIN]
    return SharedSilence(runs=len(group), first=group[0], last=words[-1]) if len(group) >= RUNS_AT_LEAST else None
