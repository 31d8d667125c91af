"""What one kind of channel can do. A new one is a module of ``build`` and ``judge``, and a line in `registry`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from rlvitals_monitor.notify.address import Resolve
from rlvitals_monitor.notify.channel import Channel
from rlvitals_monitor.notify.notification import Notification
from rlvitals_monitor.notify.parcel import Answer, Parcel, Reply

Build = Callable[[Channel, Notification, datetime], Parcel]
Judge = Callable[[Reply, datetime], Answer]
Send = Callable[[Channel, Notification, datetime, Resolve], Answer]
Check = Callable[[Channel], str]


def _fine(channel: Channel) -> str:
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """``build`` and ``judge`` for a kind that takes one POST; ``send`` for one that does not.

    ``check`` answers what was expected of a channel that cannot work ("" if it can), without telling its secrets.
    ``options`` are the keys that only this kind knows, kept in `Channel.options`; ``gap_s`` is the least time
    between two messages where the channel does not say; ``pictures``: whether it takes any.
    """

    build: Build | None = None
    judge: Judge | None = None
    send: Send | None = None
    check: Check = _fine
    options: tuple[str, ...] = ()
    gap_s: float = 0.0
    pictures: bool = False
