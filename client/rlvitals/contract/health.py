"""How the service itself is: what it needs to see and to tell."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PartHealth:
    """``words`` say what is wrong; empty while it is well."""

    name: str
    well: bool
    words: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatView:
    """The pings to an outside watcher, of whose address only the host is told.

    ``delivered_at`` is when one was last accepted, ``answer`` what the watcher said to the last one.
    """

    host: str
    every_s: float
    sent_at: datetime | None = None
    delivered_at: datetime | None = None
    answer: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthView:
    """``heartbeat`` is None where no watcher was named."""

    at: datetime
    well: bool
    parts: tuple[PartHealth, ...]
    heartbeat: HeartbeatView | None = None
