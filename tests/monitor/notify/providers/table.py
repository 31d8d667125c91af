"""What was seen of each channel and behaviour, as a table for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tests.monitor.notify.providers import Behaviour

PROVIDER_CELL = "provider_cell"
PARTS = ("group", "digest", "no picture", "Chinese", "hostile text")
"""What of ours each channel was tried with, beside what a provider does."""
NOT_HAD = "·"


def table(cells: Sequence[Sequence[str]]) -> Iterator[str]:
    """Lines of (channel, behaviour, what came of it) as channel × behaviour; a cell's outcomes are joined."""
    seen: dict[str, dict[str, list[str]]] = {}
    for channel, behaviour, outcome in cells:
        outcomes = seen.setdefault(channel, {}).setdefault(behaviour, [])
        if outcome not in outcomes:
            outcomes.append(outcome)
    columns = [*(behaviour.value for behaviour in Behaviour), *PARTS]
    rows = [["channel", *columns]]
    rows += [[name, *(", ".join(row.get(c, [NOT_HAD])) for c in columns)] for name, row in seen.items()]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
