"""What a person looks at among the charts of a run, and its address. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rlvitals_dashboard.panels import FOLDED


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What the person looks at; the URL says the same."""

    run: str
    attempt: str = ""
    first: int | None = None
    last: int | None = None
    more: frozenset[str] = frozenset()
    closed: frozenset[str] = FOLDED

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> View:
        """From the browser's store. Anything that is no whole number is no range."""
        first, last = _whole(data.get("from")), _whole(data.get("to"))
        return cls(
            run=str(data.get("run", "")),
            attempt=str(data.get("attempt") or ""),
            first=first if last is not None else None,
            last=last if first is not None else None,
            more=_keys(data.get("more"), frozenset()),
            closed=_keys(data.get("closed"), FOLDED),
        )

    def data(self) -> dict[str, Any]:
        return {
            "run": self.run,
            "attempt": self.attempt,
            "from": self.first,
            "to": self.last,
            "more": sorted(self.more),
            "closed": sorted(self.closed),
        }


def _whole(value: object) -> int | None:
    try:
        return None if value is None or isinstance(value, bool) else int(float(str(value)))
    except (ValueError, OverflowError):
        return None


def _keys(value: object, default: frozenset[str]) -> frozenset[str]:
    if isinstance(value, str):
        return frozenset(filter(None, value.split(",")))
    return frozenset(str(v) for v in value) if isinstance(value, (list, tuple)) else default
