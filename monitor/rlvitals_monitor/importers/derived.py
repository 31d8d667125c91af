"""Registry metrics that follow from a pair of logged ones, exactly."""

from __future__ import annotations

from collections.abc import Mapping

ADVANTAGE = "reward.advantage_abs_max"
_ADVANTAGE_ENDS = (("critic/advantages/max", "critic/advantages/min"), ("advantages/max", "advantages/min"))


def derive(values: Mapping[str, float]) -> dict[str, float]:
    """What ``values`` say beside themselves; nothing that is there already."""
    found: dict[str, float] = {}
    for high, low in _ADVANTAGE_ENDS:
        if high in values and low in values and ADVANTAGE not in values:
            ends = abs(values[high]), abs(values[low])
            # max() would lose a NaN in second place
            found[ADVANTAGE] = next((end for end in ends if end != end), max(ends))
    return found
