"""Extremes that were found in a micro-batch's rows, told by the numbers of their completions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from torch import Tensor

from rlvitals.contract.report import Extreme
from rlvitals.probes.arrays import Floats
from rlvitals.probes.reduction import Reduction
from rlvitals.probes.tally import Tally


def numbered(reduction: Reduction, rows: Tensor) -> Reduction:
    """The same, whose extremes were found in rows 0, 1, … and are told by the numbers in ``rows``."""
    return Reduction(
        parts=(*reduction.parts, rows.double()), build=partial(_numbered, reduction.build, len(reduction.parts))
    )


def _numbered(build: Callable[[Sequence[Floats]], Tally], own: int, parts: Sequence[Floats]) -> Tally:
    tally, numbers = build(parts[:own]), parts[own].astype(int).tolist()
    return replace(
        tally,
        minima=_renamed(tally.minima, numbers),
        maxima=_renamed(tally.maxima, numbers),
        firsts=_renamed(tally.firsts, numbers),
    )


def _renamed(extremes: Mapping[str, Extreme], numbers: Sequence[int]) -> dict[str, Extreme]:
    return {name: replace(extreme, sample=_number(extreme.sample, numbers)) for name, extreme in extremes.items()}


def _number(row: int | None, numbers: Sequence[int]) -> int | None:
    known = row is not None and row < len(numbers) and numbers[row] >= 0
    return numbers[row] if known and row is not None else None
