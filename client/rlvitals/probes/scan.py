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
from rlvitals.probes.utf8 import PAIRED, STRIDE, Maps, Pairs

TRIVIAL_MAP, RESET_MAP = 0, 1
LOOK_BACK = 3
_PAIR_BITS, _STRIDE_BITS = PAIRED.bit_length() - 1, STRIDE.bit_length() - 1
# tokens looked at together: few enough for the intermediate arrays to stay in a core's cache
BLOCK = 1 << 16
# from this share of tokens that need a look on, looking at every one, but at two at once, is cheaper
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
    dense = maps.pairs is not None and np.count_nonzero(own) > _DENSE * own.size
    at = _suspects(maps.pairs, flat) if maps.pairs is not None and dense else np.flatnonzero(own)
    step = _steps(maps, flat, at)
    notable = np.flatnonzero(maps.notable[step])
    at, step = at[notable] - LOOK_BACK, step[notable]
    cut = step < (RESET_MAP + 1) * STRIDE
    cut &= step >= RESET_MAP * STRIDE
    return at[~cut], step[~cut], at[cut]


def _suspects(pairs: Pairs, flat: Codes) -> Whole:
    """Where in ``flat`` something is notable, looking at all tokens but at two of them at once."""
    both = flat[:-1] << _PAIR_BITS
    both |= flat[1:]
    # two and three tokens ago set the state; "clip" spares the check of bounds, which hold by construction
    state = pairs.after.take(both[:-2], mode="clip")
    step = both[2:] << _STRIDE_BITS
    step |= state
    found: Whole = np.flatnonzero(pairs.notable.take(step, mode="clip"))
    found += LOOK_BACK
    return found


def steps_at(maps: Maps, codes: Codes, at: Whole) -> Whole:
    """map * STRIDE + state at the places ``at`` of flat map numbers, by the three tokens before each."""
    return _steps(maps, np.concatenate([np.full(LOOK_BACK, RESET_MAP, np.uint16), codes]), at + LOOK_BACK)


def _steps(maps: Maps, flat: Codes, at: Whole) -> Whole:
    step = flat[at - LOOK_BACK].astype(np.int64) * STRIDE
    for back in range(LOOK_BACK - 1, -1, -1):
        step = flat[at - back].astype(np.int64) * STRIDE + maps.after[step]
    return step


def _per_row(row: Whole, amount: npt.NDArray[np.generic], rows: int) -> Whole:
    return np.bincount(row, weights=amount.astype(np.float64), minlength=rows).astype(np.int64)
