"""What a person looks at among the charts of a run, and its address. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rlvitals_dashboard.figure_scale import WISHES
from rlvitals_dashboard.panels import FOLDED
from rlvitals_dashboard.smoothing import find_smoothing

LONGEST_WORDS = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What is drawn; the URL says the same. ``scale`` is a wish of `figure_scale`, ``smooth`` the key of a
    smoothing, ``find`` words of which all must be in a metric's name."""

    run: str
    attempt: str = ""
    first: int | None = None
    last: int | None = None
    more: frozenset[str] = frozenset()
    closed: frozenset[str] = FOLDED
    scale: str = ""
    smooth: str = ""
    find: str = ""

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> View:
        """From the browser's store. Anything that is no whole number is no range."""
        first, last = whole(data.get("from")), whole(data.get("to"))
        scale, smooth = data.get("scale"), data.get("smooth")
        return cls(
            run=str(data.get("run", "")),
            attempt=str(data.get("attempt") or ""),
            first=first if last is not None else None,
            last=last if first is not None else None,
            more=_keys(data.get("more"), frozenset()),
            closed=_keys(data.get("closed"), FOLDED),
            scale=scale if isinstance(scale, str) and scale in WISHES else "",
            smooth=smooth if isinstance(smooth, str) and find_smoothing(smooth) else "",
            find=str(data.get("find") or "")[:LONGEST_WORDS],
        )

    def data(self) -> dict[str, Any]:
        return {
            "run": self.run,
            "attempt": self.attempt,
            "from": self.first,
            "to": self.last,
            "more": sorted(self.more),
            "closed": sorted(self.closed),
            "scale": self.scale,
            "smooth": self.smooth,
            "find": self.find,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Glance:
    """Where in what is drawn a person looks: at ``step`` (None: at the newest), and whether the charts stand
    still. It never needs a new drawing."""

    step: int | None = None
    paused: bool = False

    @classmethod
    def read(cls, data: Mapping[str, Any] | None) -> Glance:
        told = data or {}
        return cls(step=whole(told.get("step")), paused=told.get("paused") in (True, "1", 1))

    def data(self) -> dict[str, Any]:
        return {"step": self.step, "paused": self.paused}


def whole(value: object) -> int | None:
    try:
        found = None if value is None or isinstance(value, bool) else int(float(str(value)))
    except (ValueError, OverflowError):
        return None
    return found if found is not None and abs(found) <= 2**53 else None


def _keys(value: object, default: frozenset[str]) -> frozenset[str]:
    if isinstance(value, str):
        return frozenset(filter(None, value.split(",")))
    return frozenset(str(v) for v in value) if isinstance(value, (list, tuple)) else default
