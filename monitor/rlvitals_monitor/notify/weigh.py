"""Whether a delivery goes now, waits, or is dropped: decided as its time comes. Pure; the clock is an argument."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from rlvitals.contract.alert import AlertState
from rlvitals_monitor.notify.hours import QuietHours
from rlvitals_monitor.silences.silence import Silence
from rlvitals_monitor.store.due import Due, Told
from rlvitals_monitor.store.outbox import NEWS, REMINDER

SILENCE_LOOK = timedelta(seconds=30)
"""How often a silenced delivery is looked at again, since a silence may be ended before its time."""
NEWS_LOOK = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class Send:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    until: datetime
    why: str
    silenced: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    why: str


Weighed = Send | Wait | Drop


def weigh(due: Due, told: Told, silence: Silence | None, quiet: QuietHours | None, now: datetime) -> Weighed:
    """``told``: whether the channel knows that the alert fires; ``silence``: one in force that is about it.

    A recovery is for those who heard of the beginning. Within a silence nothing is said; at its end what still
    fires is, and the end of what was told before.
    """
    why = _moot(due, told)
    if why:
        return Drop(why=why)
    if silence is not None:
        return Wait(until=min(silence.ends_at, now + SILENCE_LOOK), why=_words(silence), silenced=True)
    after_quiet = now if quiet is None else quiet.until(now, due.severity)
    if after_quiet > now:
        return Wait(until=after_quiet, why=f"quiet hours until {after_quiet:%Y-%m-%d %H:%M} UTC")
    if due.after is AlertState.RESOLVED and told is Told.NOT_YET:
        return Wait(until=now + NEWS_LOOK, why="the news that it fires goes first")
    return Send()


def _moot(due: Due, told: Told) -> str:
    if due.after is AlertState.RESOLVED:
        return "nobody was told here that it fires" if told is Told.NO else ""
    if due.purpose == NEWS:
        return "it was over before it was to be told" if due.was_silenced and not due.is_firing else ""
    if not due.is_firing:
        return "it does not fire any more"
    if due.purpose == REMINDER and due.is_over:
        return "its run has ended, so there is nothing to remind of"
    return f"acknowledged by {due.acknowledged_by}" if due.acknowledged_by else ""


def _words(silence: Silence) -> str:
    who = f" by {silence.who}" if silence.who else ""
    why = f": {silence.why}" if silence.why else ""
    return f"silenced{who} until {silence.ends_at:%Y-%m-%d %H:%M} UTC{why}"
