"""How the service itself is: what it needs to see and to tell."""

from __future__ import annotations

from collections.abc import Mapping
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


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseView:
    """``kind`` is sqlite or postgresql; ``free_bytes`` of the disk is None where the database is elsewhere."""

    kind: str
    size_bytes: int
    runs: int
    free_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueView:
    """Work that waits in the database: ``judging`` are attempts with steps that no rule has seen, ``messages`` are
    due and not delivered, ``decisions`` are proposals for people. ``since``: the oldest of it waits so long."""

    name: str
    waiting: int
    since: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceView:
    """The process that answers, and the database that all processes share.

    ``lag_s`` is the age of the newest step when it was stored, None before the first; ``stored`` and ``dropped``
    count records since the process started, the latter by reason.
    """

    at: datetime
    started_at: datetime
    version: str
    role: str
    parts: tuple[PartHealth, ...]
    database: DatabaseView
    queues: tuple[QueueView, ...]
    stored: int
    dropped: Mapping[str, int]
    lag_s: float | None = None
    heartbeat: HeartbeatView | None = None
