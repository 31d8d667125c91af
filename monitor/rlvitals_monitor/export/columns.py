"""How the columns of an exported table are called."""

from __future__ import annotations

from collections.abc import Sequence

STEP, TIME = "step", "time"
OWN = "values."


def column_names(metrics: Sequence[str]) -> list[str]:
    """A metric's name; one that is called as the step's or the time's column stands behind `OWN`."""
    taken = {STEP, TIME, *metrics}
    names = []
    for metric in metrics:
        name = metric
        while name in (STEP, TIME) or (name != metric and name in taken):
            name = OWN + name
        names.append(name)
    return names
