"""Which runs a person compares, along what, and the address that says so. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from rlvitals.contract.comparison import Axis
from rlvitals.contract.metrics import METRICS
from rlvitals.contract.view import MetricView
from rlvitals_dashboard.panels import LEADS

RUNS_MAX, METRICS_MAX, LONGEST_KEY = 6, 12, 200
METRICS_SHOWN = 6
"""Where nobody chose any."""
NO_BAND = "none"

_FIRST = ("reward.mean", "kl.k3", "policy.entropy", "gradient.norm", "length.mean", "kl.coef")
"""What most regressions are looked for in."""
_ORDER = {name: place for place, name in enumerate(dict.fromkeys((*_FIRST, *(m.name for m in METRICS))))}


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """``runs`` are keys: a run, or ``run@attempt``; the others are held against the first. Without ``metrics`` the
    page chooses. ``healthy``: empty for the project's own."""

    runs: tuple[str, ...] = ()
    by: Axis = Axis.STEP
    metrics: tuple[str, ...] = ()
    first: float | None = None
    last: float | None = None
    healthy: tuple[str, ...] = ()
    settings: str = ""

    @classmethod
    def read(cls, query: Mapping[str, Any]) -> View:
        """Anything that cannot be meant is left out. ``add`` and ``and`` are what a form adds."""
        first, last = _place(query.get("from")), _place(query.get("to"))
        zoomed = first is not None and last is not None and first < last
        by = str(query.get("by", ""))
        return cls(
            runs=_list(query.get("runs"), query.get("add"))[:RUNS_MAX],
            by=Axis(by) if by in {axis.value for axis in Axis} else Axis.STEP,
            metrics=_list(query.get("metrics"), query.get("and"))[:METRICS_MAX],
            first=first if zoomed else None,
            last=last if zoomed else None,
            healthy=_list(query.get("healthy"))[:RUNS_MAX],
            settings="all" if query.get("settings") == "all" else "",
        )

    def asked(self) -> dict[str, str]:
        """The part of the address behind its question mark."""
        told = {
            "runs": ",".join(self.runs),
            "by": "" if self.by is Axis.STEP else self.by.value,
            "metrics": ",".join(self.metrics),
            "from": "" if self.first is None else f"{self.first:.17g}",
            "to": "" if self.last is None else f"{self.last:.17g}",
            "healthy": ",".join(self.healthy),
            "settings": self.settings,
        }
        return {name: value for name, value in told.items() if value}


def address(prefix: str, view: View, **changes: Any) -> str:
    """Of the page with some of its choices changed. A place on one axis is none on another."""
    if "by" in changes:
        changes = {"first": None, "last": None} | changes
    told = replace(view, **changes).asked()
    return f"{prefix}compare" + (f"?{urlencode(told, safe=',')}" if told else "")


def choose_metrics(view: View, known: Sequence[Iterable[MetricView]]) -> tuple[str, ...]:
    """Those that were asked for, else what is looked at first of what the runs have, best what all have."""
    if view.metrics:
        return view.metrics
    have = [{m.metric for m in metrics if m.points} for metrics in known]
    seen = set().union(*have)
    leading = sorted(seen & LEADS, key=_rank) or sorted(seen, key=_rank)
    shared = [name for name in leading if all(name in names for names in have)]
    return tuple([*shared, *(name for name in leading if name not in shared)][:METRICS_SHOWN])


def offered(known: Sequence[Iterable[MetricView]]) -> list[str]:
    return sorted({m.metric for metrics in known for m in metrics if m.points}, key=_rank)


def _rank(name: str) -> tuple[int, str]:
    return _ORDER.get(name, len(_ORDER)), name


def _list(*values: object) -> tuple[str, ...]:
    words = [word.strip()[:LONGEST_KEY] for value in values for word in str(value or "").split(",")]
    return tuple(dict.fromkeys(filter(None, words)))


def _place(value: object) -> float | None:
    try:
        place = float(str(value))
    except ValueError:
        return None
    return place if math.isfinite(place) else None
