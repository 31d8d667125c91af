"""Exact duplicates among the completions of one prompt."""

from __future__ import annotations

from typing import Any

import numpy as np

from rlvitals.contract.report import Extreme
from rlvitals.probes import arguments
from rlvitals.probes.arrays import whole
from rlvitals.probes.chosen import chosen_mask
from rlvitals.probes.tally import Tally

METRIC = "text.duplicate_rate"
NO_GROUPS = "groups of one completion hold no duplicates"


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
    duplicates, worst, first = 0, 0, 0
    for start in range(0, numbers.shape[0], group_size):
        rows = range(start, min(start + group_size, numbers.shape[0]))
        chosen_ids = (numbers[row] if mask is None else numbers[row, mask[row]] for row in rows)
        extra = len(rows) - len({np.ascontiguousarray(row).tobytes() for row in chosen_ids})
        duplicates += extra
        if extra > worst:
            worst, first = extra, start
    counts = {"duplicates.completions": numbers.shape[0], "duplicates.found": duplicates}
    if not worst:
        return Tally(counts=counts)
    where = Extreme(value=float(worst), sample=first + sample_offset)
    return Tally(counts=counts, maxima={"duplicates.worst_group": where})
