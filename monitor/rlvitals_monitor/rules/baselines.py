"""Functions with a memory: what each reads from its slot at a step, and what it learns when the step is over.

A slot is a list of finite doubles, so it can be kept as JSON between processes. Reading never changes a slot;
`learn` is called once a step, after the verdict, and only with a finite argument. ``quiet`` says that the rule
neither held at this step nor has an open alert: only then a baseline learns, so that a fault never becomes normal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rlvitals_monitor.rules.value import Number, Unknown
from rlvitals_monitor.rules.window import mad, median

LEAST_QUIET = 20
"""A rolling baseline says nothing before it has seen this many quiet steps (or n, if that is less)."""

Slot = list[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """``read(slot, x, n, extra)`` is pure; ``learn(slot, x, n, quiet, warm)`` changes the slot in place.

    ``warm`` is True once the rule's warm-up is over. ``extra`` is the second number of `robust_z`, else 0.
    """

    read: Callable[[Sequence[float], float, int, float], Number]
    learn: Callable[[Slot, float, int, bool, bool], None]


def _read_lag(slot: Sequence[float], x: float, n: int, extra: float) -> Number:
    return slot[-n] if len(slot) >= n else Unknown(f"{len(slot)} of {n} earlier steps seen")


def _learn_lag(slot: Slot, x: float, n: int, quiet: bool, warm: bool) -> None:
    slot.append(x)
    del slot[:-n]


def _read_ema(slot: Sequence[float], x: float, n: int, extra: float) -> Number:
    return x if not slot else slot[0] + (x - slot[0]) * 2.0 / (n + 1)


def _learn_ema(slot: Slot, x: float, n: int, quiet: bool, warm: bool) -> None:
    value = _read_ema(slot, x, n, 0.0)
    if isinstance(value, float) and math.isfinite(value):
        slot[:] = [value]


def _read_peak(slot: Sequence[float], x: float, n: int, extra: float) -> Number:
    return max(slot[0], x) if slot else x


def _learn_peak(slot: Slot, x: float, n: int, quiet: bool, warm: bool) -> None:
    if warm:
        slot[:] = [max(slot[0], x) if slot else x]


def _read_trough(slot: Sequence[float], x: float, n: int, extra: float) -> Number:
    return min(slot[0], x) if slot else x


def _learn_trough(slot: Slot, x: float, n: int, quiet: bool, warm: bool) -> None:
    if warm:
        slot[:] = [min(slot[0], x) if slot else x]


def _read_baseline(slot: Sequence[float], x: float, n: int, extra: float) -> Number:
    enough = min(n, LEAST_QUIET)
    return median(slot) if len(slot) >= enough else Unknown(f"baseline: {len(slot)} of {enough} quiet steps seen")


def _learn_baseline(slot: Slot, x: float, n: int, quiet: bool, warm: bool) -> None:
    if quiet:
        slot.append(x)
        del slot[:-n]


# A first baseline's slot starts with how many steps it has seen; once that is n, only the median is kept.
def _read_first(slot: Sequence[float], x: float, n: int, extra: float) -> Number:
    seen = int(slot[0]) if slot else 0
    return slot[1] if seen >= n else Unknown(f"first baseline: {seen} of {n} quiet steps seen")


def _learn_first(slot: Slot, x: float, n: int, quiet: bool, warm: bool) -> None:
    if not (quiet and warm) or (slot and slot[0] >= n):
        return
    values = [*slot[1:], x]
    slot[:] = [float(n), median(values)] if len(values) >= n else [float(len(values)), *values]


def _read_z(slot: Sequence[float], x: float, n: int, extra: float) -> Number:
    middle = _read_baseline(slot, x, n, extra)
    if isinstance(middle, Unknown):
        return middle
    scale = max(1.4826 * mad(slot), extra)
    return (
        (x - middle) / scale if scale > 0 else Unknown("the baseline has no spread and the floor is not positive")
    )


MEMORIES: dict[str, Memory] = {
    "lag": Memory(read=_read_lag, learn=_learn_lag),
    "ema": Memory(read=_read_ema, learn=_learn_ema),
    "peak": Memory(read=_read_peak, learn=_learn_peak),
    "trough": Memory(read=_read_trough, learn=_learn_trough),
    "baseline": Memory(read=_read_baseline, learn=_learn_baseline),
    "first_baseline": Memory(read=_read_first, learn=_learn_first),
    "robust_z": Memory(read=_read_z, learn=_learn_baseline),
}
