"""Exact duplicates among the completions of one prompt."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from itertools import islice
from typing import Any

import numpy as np

from rlvitals.contract.report import Extreme
from rlvitals.probes import arguments
from rlvitals.probes.arrays import whole
from rlvitals.probes.chosen import chosen_mask
from rlvitals.probes.tally import Tally
from rlvitals.probes.uncompiled import uncompiled

METRIC = "text.duplicate_rate"
NO_GROUPS = "groups of one completion hold no duplicates"


@uncompiled
def tally_duplicates(ids: Any, chosen: Any, group_size: int, *, sample_offset: int = 0) -> Tally:
    """Tallies completions ``ids`` (B, T) in groups of ``group_size`` neighbours, which no part may cut.

    ``chosen`` are their lengths (B,) or the mask (B, T) of chosen tokens, which alone are compared. A group holds
    as many duplicates as it has completions beyond the distinct ones; a last group that is not full counts with
    the completions that it has.
    """
    arguments.check_at_least("group_size", group_size, 1)
    if group_size == 1:
        return Tally.absent((METRIC,), NO_GROUPS)
    numbers = whole(ids)
    mask = chosen_mask(chosen, numbers.shape)
    rows = (row if mask is None else row[mask[place]] for place, row in enumerate(numbers))
    return tally_keys((np.ascontiguousarray(row).tobytes() for row in rows), group_size, sample_offset)


def tally_keys(keys: Iterable[Hashable], group_size: int, sample_offset: int) -> Tally:
    """Tallies completions in their order by ``keys`` that are equal where two completions are."""
    completions, duplicates, worst, first = 0, 0, 0, 0
    every = iter(keys)
    while group := list(islice(every, group_size)):
        extra = len(group) - len(set(group))
        if extra > worst:
            worst, first = extra, completions
        completions += len(group)
        duplicates += extra
    counts = {"duplicates.completions": completions, "duplicates.found": duplicates}
    if not worst:
        return Tally(counts=counts)
    where = Extreme(value=float(worst), sample=first + sample_offset)
    return Tally(counts=counts, maxima={"duplicates.worst_group": where})
