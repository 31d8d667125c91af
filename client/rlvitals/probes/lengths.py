"""Lengths of completions, truncation and stops (signals 1.7)."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from rlvitals.contract.report import Extreme
from rlvitals.probes.arrays import Flags, Whole, flags, whole
from rlvitals.probes.sketch import Sketch
from rlvitals.probes.tally import Tally

# four bins per octave up to 2**18 tokens
_LOW, _HIGH, _BINS = 1.0, float(1 << 18), 72

NO_CAP = "no length limit is known: truncation cannot be told from a stop"
NO_STOP_IDS = "no stop ids are known"


def tally_lengths(
    lengths: Any,
    last_ids: Any,
    stop_ids: Collection[int],
    cap: int | None,
    *,
    truncated: Any = None,
    sample_offset: int = 0,
) -> Tally:
    """Tallies one part of a step's completions.

    ``lengths`` (B,) tokens that the policy chose, stop id included; ``last_ids`` (B,) the last of them (any value
    where the length is 0); ``stop_ids`` *all* ids that end a completion; ``cap`` the limit in tokens, None where
    unknown. ``truncated`` (B,) overrides the rule where the engine's finish reason is known. ``sample_offset``
    is added to the row to give the sample's number in the step.
    """
    size, last = whole(lengths, "lengths").ravel(), whole(last_ids, "last_ids").ravel()
    if size.shape != last.shape:
        raise ValueError(
            f"lengths and last_ids: expected one last id per completion, got {last.size} of {size.size}"
        )
    stopped = np.isin(last, np.fromiter(stop_ids, np.int64, len(stop_ids))) & (size > 0)
    cut = flags(truncated).ravel() if truncated is not None else _cut(size, stopped, cap, bool(stop_ids))
    counts = {
        "length.completions": int(size.size),
        "length.tokens": int(size.sum()),
        "length.empty": int(((size == 0) | ((size == 1) & stopped)).sum()),
    }
    counts |= {} if cut is None else {"length.truncated": int(cut.sum())}
    counts |= {"length.stopped": int(stopped.sum())} if stop_ids else {}
    missing = {} if cut is not None else {"length.truncation_rate": NO_CAP if stop_ids else NO_STOP_IDS}
    missing |= {} if stop_ids else {"length.stop_rate": NO_STOP_IDS}
    return Tally(
        counts=counts,
        minima={"length.min": _at(size, int(size.argmin()), sample_offset)} if size.size else {},
        maxima={"length.max": _at(size, int(size.argmax()), sample_offset)} if size.size else {},
        sketches={"length.tokens": Sketch.of(size, low=_LOW, high=_HIGH, bins=_BINS)},
        missing=missing,
    )


def _cut(size: Whole, stopped: Flags, cap: int | None, stop_ids: bool) -> Flags | None:
    return None if cap is None or not stop_ids else ~stopped & (size >= cap)


def _at(size: Whole, row: int, offset: int) -> Extreme:
    return Extreme(value=float(size[row]), sample=row + offset)
