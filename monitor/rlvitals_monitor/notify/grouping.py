"""Which runs may be told of now, and whether in a message each or in one digest of all. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from rlvitals_monitor.alerts.shared_silence import RUNS_AT_LEAST
from rlvitals_monitor.notify.channel import Channel
from rlvitals_monitor.store.contents import Lately
from rlvitals_monitor.store.due import DueRun
from rlvitals_monitor.store.turns import WINDOW


def choose(
    channel: Channel, due: Sequence[DueRun], lately: Mapping[str, Lately], spent: int, now: datetime
) -> tuple[str, ...]:
    """The runs of the next message: the weightiest by itself, or all where they are more than the budget lets
    through. None where nothing is ready or the budget is spent.

    Runs that fell silent, or are heard again, at once are told of at once: most often one thing is behind it.
    """
    room = capacity(channel, spent)
    ready = [one for one in due if ready_at(channel, one, lately.get(one.run)) <= now]
    if not ready or room < 1:
        return ()
    ready.sort(key=lambda one: (-one.rank, one.since, one.run))
    if len(ready) > room:
        return tuple(one.run for one in ready)
    alike = [one for one in ready if one.of_signs]
    together = alike if ready[0].of_signs and len(alike) >= RUNS_AT_LEAST else ready[:1]
    return tuple(one.run for one in together)


def ready_at(channel: Channel, due: DueRun, lately: Lately | None) -> datetime:
    """A run's first news waits for company, later ones for the interval's end, unless they are stronger."""
    waited = due.since + timedelta(seconds=channel.group_wait_s)
    if lately is None or due.rank > lately.rank:
        return waited
    return max(waited, lately.at + timedelta(seconds=channel.group_interval_s))


def capacity(channel: Channel, spent: int) -> float:
    """How many messages may still go within the budget's window."""
    by_gap = WINDOW.total_seconds() / channel.gap_s if channel.gap_s > 0.0 else float("inf")
    by_budget = channel.budget - spent if channel.budget else float("inf")
    return min(max(by_gap, 1.0), by_budget)
