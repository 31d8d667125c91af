"""What has come of age, by what people chose. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from rlvitals.contract.view import RetentionView


@dataclass(frozen=True, slots=True, kw_only=True)
class Cutoffs:
    """What came before these times may go; None is never."""

    points: datetime | None = None
    texts: datetime | None = None
    histograms: datetime | None = None
    runs: datetime | None = None


def cutoffs(chosen: RetentionView, now: datetime) -> Cutoffs:
    """Days beyond the calendar are for ever."""
    return Cutoffs(
        points=_before(chosen.points_days, now),
        texts=_before(chosen.texts_days, now),
        histograms=_before(chosen.histograms_days, now),
        runs=_before(chosen.runs_days, now),
    )


def _before(days: float | None, now: datetime) -> datetime | None:
    if days is None:
        return None
    try:
        return now - timedelta(days=days)
    except (OverflowError, ValueError):
        return None
