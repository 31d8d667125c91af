"""What a person typed beside a button. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

Said: TypeAlias = Mapping[str, object]
"""By name."""


def number_of(said: Said, name: str = "argument") -> float | None:
    value = said.get(name)
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def words_of(said: Said, name: str) -> str:
    value = said.get(name)
    return value.strip() if isinstance(value, str) else ""
