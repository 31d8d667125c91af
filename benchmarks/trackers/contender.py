"""What a module of `contenders` has to have; the smallest is a file of forty lines.

``open_run`` is required. ``serve`` starts what is looked at; where ``TAKES_REPORTS``, the reports go there.
What it cannot do stands in ``WITHOUT``: cell → why.
"""

from __future__ import annotations

import importlib
import json
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from benchmarks.trackers.work import FIRST

Point = tuple[int, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a contender keeps its files, and where its server listens."""

    folder: Path
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


class Opened(NamedTuple):
    """``log`` takes a step and its numbers; ``close`` may wait until all is delivered."""

    log: Callable[[int, Mapping[str, float]], object]
    close: Callable[[], object]


class Contender(Protocol):
    """A module. ``REQUIREMENTS`` are pinned; empty where it runs in our own environment."""

    SHOWN: str
    REQUIREMENTS: tuple[str, ...]
    IMPORT: str
    TAKES_REPORTS: bool
    READY: str
    WITHOUT: Mapping[str, str]

    def environment(self, place: Place) -> Mapping[str, str]:
        """Variables of its trainers, readers and server."""

    def serve(self, place: Place) -> list[str]:
        """Arguments to its environment's Python; empty where there is nothing to start."""

    def open_run(self, place: Place, run: str) -> Opened: ...

    def last_step(self, place: Place, run: str) -> int:
        """The newest step of `work.FIRST` that is readable now; -1 for none."""

    def steps(self, place: Place, run: str, name: str) -> list[int]:
        """Every step of a metric that is readable now."""

    def chart(self, place: Place, run: str, name: str) -> list[Point]:
        """What its own chart of a whole run gets by default, a NaN as NaN."""


DEFAULTS: Mapping[str, Any] = {
    "REQUIREMENTS": (),
    "TAKES_REPORTS": False,
    "READY": "/",
    "WITHOUT": {},
    "environment": lambda place: {},
    "serve": lambda place: [],
}


def contender(name: str) -> Contender:
    """The module called so, with what it leaves out filled in."""
    module: Any = importlib.import_module(f"benchmarks.trackers.contenders.{name}")
    for key, value in DEFAULTS.items():
        if not hasattr(module, key):
            setattr(module, key, value)
    if not hasattr(module, "last_step") and hasattr(module, "steps"):
        module.last_step = lambda place, run: max(module.steps(place, run, FIRST), default=-1)
    found: Contender = module
    return found


def get(url: str, query: Mapping[str, object] | None = None, headers: Mapping[str, str] | None = None) -> Any:
    """The JSON there; raises OSError and ValueError."""
    asked = f"{url}?{urllib.parse.urlencode(query)}" if query else url
    with urllib.request.urlopen(urllib.request.Request(asked, headers=dict(headers or {})), timeout=60) as answer:
        return json.loads(answer.read())


def post(url: str, body: object) -> Any:
    """As `get`."""
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read())
