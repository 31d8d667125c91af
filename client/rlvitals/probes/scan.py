"""Runs the UTF-8 transducer over whole batches of ids at once, exactly and without decoding anything.

Every token has at least one byte and a pending subpart at most three, and a byte that starts a character sets the
state whatever came before. So the state before a token follows from the three tokens before it, and all positions
can be looked at together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rlvitals.probes.arrays import Flags, Whole
from rlvitals.probes.utf8 import STRIDE, Maps

TRIVIAL_MAP, RESET_MAP = 0, 1
LOOK_BACK = 3
# tokens looked at together: few enough for the intermediate arrays to stay in a core's cache
BLOCK = 1 << 16
# from this share of characters in pieces on, looking at every token is cheaper than looking at some
_DENSE = 0.25

Codes = npt.NDArray[np.uint16]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowCounts:
    """Per completion (B,): ill-formed subparts, characters cut at the end, literal U+FFFD.

    ``error_rows`` and ``error_positions`` name the tokens at which the errors came to light, in order.
    """

    errors: Whole
    tails: Whole
    literals: Whole
    error_rows: Whole
    error_positions: Whole


def code_rows(map_of: Codes, slots: Whole, chosen: Flags | None) -> Codes:
    """(B, T) indexes of ``map_of`` → (B, T + 1) map numbers: RESET behind each row and where not ``chosen``."""
    rows, width = slots.shape
    codes = np.full((rows, width + 1), RESET_MAP, np.uint16)
    codes[:, :width] = map_of[slots]
    if chosen is not None:
        codes[:, :width][~chosen] = RESET_MAP
    return codes


def scan(maps: Maps, codes: Codes) -> RowCounts:
    """Counts over (B, T + 1) map numbers as `code_rows` makes them."""
    rows, width = codes.shape
    events, tails = [_NO_EVENTS], [_NO_EVENTS[0]]
    for start in range(0, rows, max(1, BLOCK // width)):
        place, step, cut = _block(maps, codes[start : start + max(1, BLOCK // width)].ravel())
        events.append(np.stack([place + start * width, step]))
        tails.append(cut + start * width)
    place, step = np.concatenate(events, axis=1)
    row, errors = place // width, maps.errors[step]
    wrong = np.flatnonzero(errors)
    return RowCounts(
        errors=_per_row(row, errors, rows),
        tails=np.bincount(np.concatenate(tails) // width, minlength=rows),
        literals=_per_row(row, maps.literals[step], rows),
        error_rows=row[wrong],
        error_positions=place[wrong] % width,
    )


_NO_EVENTS = np.empty((2, 0), np.int64)


def _block(maps: Maps, codes: Codes) -> tuple[Whole, Whole, Whole]:
    """Where something is counted, the step taken there (map * STRIDE + state), and where a character is cut."""
    flat = np.concatenate([np.full(LOOK_BACK, RESET_MAP, np.uint16), codes])
    own = flat > RESET_MAP
    own[1:] |= own[:-1].copy()
    if np.count_nonzero(own) > _DENSE * own.size:
        steps = flat.astype(np.int64) * STRIDE
        before, here, at = [steps[back:][: codes.size] for back in range(LOOK_BACK)], steps[LOOK_BACK:], None
    else:
        at = np.flatnonzero(own)
        before = [flat[at - back].astype(np.int64) * STRIDE for back in range(LOOK_BACK, 0, -1)]
        here = flat[at].astype(np.int64) * STRIDE
    state = maps.after[before[0]]
    state = maps.after[before[1] + state]
    state = maps.after[before[2] + state]
    step = here + state
    event = np.flatnonzero(maps.counts[step])
    cut = np.flatnonzero((here == RESET_MAP * STRIDE) & (state != 0))
    if at is None:
        return event, step[event], cut
    return at[event] - LOOK_BACK, step[event], at[cut] - LOOK_BACK


def _per_row(row: Whole, amount: npt.NDArray[np.generic], rows: int) -> Whole:
    return np.bincount(row, weights=amount.astype(np.float64), minlength=rows).astype(np.int64)
