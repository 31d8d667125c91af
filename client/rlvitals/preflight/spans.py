"""Ids as people read them: 151643-151656, 151665-151935."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

SHOWN = 8
"""Single ids, spans or examples that evidence names; the rest is counted."""


def runs(ids: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Maximal runs of consecutive ids as (first, last), ascending."""
    first = last = None
    for token_id in sorted(set(ids)):
        if first is None or last is None:
            first = token_id
        elif token_id != last + 1:
            yield first, last
            first = token_id
        last = token_id
    if first is not None and last is not None:
        yield first, last


def spans(ids: Iterable[int]) -> str:
    """``0-93, 220, 151643-151664``; after some runs "and N more runs"."""
    return cut([str(low) if low == high else f"{low}-{high}" for low, high in runs(ids)], "runs")


def cut(shown: list[str], what: str) -> str:
    """The first few, and how many more there are."""
    more = f", and {len(shown) - SHOWN} more {what}" if len(shown) > SHOWN else ""
    return ", ".join(shown[:SHOWN]) + more
