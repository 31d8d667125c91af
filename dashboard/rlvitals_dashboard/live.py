"""What one beat of a live page is: wait for a change, fetch, and say only what is new.

A page's heart is a chain of callbacks: the `Pulse` that the browser sends back says what it already shows. The
next beat starts when the last one has ended, so a slow browser never queues work. The chain runs over the
WebSocket; where a browser has none (no SharedWorker), the same callbacks run over HTTP and behave the same.

What a page shows is said by the page itself: the fingerprints of its blocks stand in it (`prints_place`), come
with them in the same answer, and go from there into each `Pulse` (assets/vitals.js). Kept anywhere else they would
be an answer ahead or behind for a moment, and a block that changed just then, or changed and changed back, would
be taken for fresh and stay wrong.
"""

from __future__ import annotations

import asyncio
import time
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from dash import html

from rlvitals.contract.codec import dumps
from rlvitals_dashboard.api import Api, ApiError, Change
from rlvitals_dashboard.components import Component

SHORTEST_BEAT_S = 0.25
"""A run that steps faster than this is shown in larger bites."""
WAIT_S = 15.0
RETRY_S = 3.0
WATCH_MS = 5_000
"""How often the browser looks whether the chain of beats still runs."""
LONGEST_TAIL = 200
"""Steps that are appended point by point before the charts are drawn anew from the server's buckets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pulse:
    """``at`` is the last step drawn by metric, ``drawn`` the run's last step when the charts were drawn whole,
    ``prints`` the fingerprint of each part of the page, ``scales`` the code of the value axis of each chart that
    is not linear, ``smooth`` what its smooth line goes on with, ``frame`` the fingerprint of all that the charts
    were drawn by, except for the steps that they show."""

    version: int = 0
    last_step: int | None = None
    drawn: int | None = None
    at: Mapping[str, int] = field(default_factory=dict)
    enveloped: tuple[str, ...] = ()
    zoomed: bool = False
    prints: Mapping[str, int] = field(default_factory=dict)
    scales: Mapping[str, float] = field(default_factory=dict)
    smooth: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    frame: int = 0

    @classmethod
    def read(cls, data: object) -> Pulse | None:
        """What came back from the browser; None when there is nothing (yet) to go on with."""
        if not isinstance(data, Mapping) or "version" not in data:
            return None
        known = {name: data[name] for name in cls.__dataclass_fields__ if name in data}
        return cls(**known | {"enveloped": tuple(known.get("enveloped", ()))})

    def data(self, **more: Any) -> dict[str, Any]:
        return asdict(self) | more


async def next_change(api: Api, run: str | None, after: int) -> Change:
    """The next change, at least one shortest beat after the question; a silent service is asked again later."""
    started = time.monotonic()
    try:
        return await api.changes(run, after, WAIT_S)
    finally:
        await asyncio.sleep(max(0.0, SHORTEST_BEAT_S - (time.monotonic() - started)))


def fingerprint(*shown: Any) -> int:
    """Changes when what is shown changes, so that a part that a person is just using is left alone."""
    return zlib.crc32(dumps(shown))


def prints_place(page: str, prints: Mapping[str, int]) -> Component:
    """Where the fingerprints of a page's blocks stand; once on each page that has a heart."""
    return html.Span(prints_text(prints), id=f"{page}-prints", className="prints notranslate", hidden=True)


def prints_text(prints: Mapping[str, int]) -> str:
    return dumps(prints).decode()


async def after_trouble(error: ApiError) -> str:
    """Waits a little, so that a dead service is not asked in a tight loop, and says what to show."""
    await asyncio.sleep(RETRY_S)
    return str(error)
