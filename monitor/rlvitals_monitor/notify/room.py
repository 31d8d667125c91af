"""Providers' limits: what still fits of parts that are sorted by weight. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

Part = TypeVar("Part")


def fitting(parts: Iterable[Part], room: int, size: Callable[[Part], int]) -> list[Part]:
    """The first parts that fit into ``room`` together: none is left out for the sake of a later one."""
    kept: list[Part] = []
    for part in parts:
        room -= size(part)
        if room < 0:
            break
        kept.append(part)
    return kept


def utf16(text: str) -> int:
    """Units of 16 bits, as some programs count characters."""
    return len(text.encode("utf-16-le")) // 2
