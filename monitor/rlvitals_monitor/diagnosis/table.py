"""Reads the table of causes. Strict: an unknown alert or a wrong key is told with what was expected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

CONFIDENCES = ("high", "medium", "low")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """``leads`` establish it, ``explains`` are its symptoms; names are ``alert`` or ``alert/severity``.

    ``beside``: at least one of these must be open too. ``change`` leads from a trainer to what to set there.
    """

    cause: str
    leads: tuple[str, ...]
    explains: tuple[str, ...]
    headline: str
    advice: str
    confidence: str = "medium"
    beside: tuple[str, ...] = ()
    change: Mapping[str, str] = field(default_factory=dict)
    isnt: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """``codes``: alert (or alert/severity) → its names in one word."""

    codes: Mapping[str, tuple[str, ...]]
    causes: tuple[Cause, ...]

    def codes_of(self, alert: str, severity: str) -> tuple[str, ...]:
        return self.codes.get(f"{alert}/{severity}", self.codes.get(alert, ()))


@cache
def load_table() -> Table:
    """The table that is shipped."""
    text = (files("rlvitals_monitor.diagnosis") / "table.yaml").read_text(encoding="utf-8")
    return read_table(text)


def read_table(text: str) -> Table:
    """Raises ValueError naming the entry."""
    tree = yaml.safe_load(text)
    if not isinstance(tree, dict) or set(tree) != {"codes", "causes"}:
        raise ValueError("expected `codes` and `causes`")
    codes = {str(alert): tuple(map(str, names)) for alert, names in tree["codes"].items()}
    return Table(codes=codes, causes=tuple(_cause(place, entry) for place, entry in enumerate(tree["causes"], 1)))


_NAMES = frozenset(f.name for f in fields(Cause))
_LISTS = frozenset({"leads", "explains", "beside"})


def _cause(place: int, entry: Mapping[str, Any]) -> Cause:
    unknown = set(entry) - _NAMES
    if unknown:
        raise ValueError(
            f"cause {place}: unknown key {', '.join(sorted(unknown))}; there are {', '.join(sorted(_NAMES))}"
        )
    if entry.get("confidence", "medium") not in CONFIDENCES:
        raise ValueError(f"cause {place}: confidence must be one of {', '.join(CONFIDENCES)}")
    values: dict[str, Any] = {name: tuple(value) if name in _LISTS else value for name, value in entry.items()}
    try:
        return Cause(**values)
    except TypeError as error:
        raise ValueError(f"cause {place}: {error}") from None
