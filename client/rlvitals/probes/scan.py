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
_LOOK_BACK = 3

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


def code_rows(map_of: Codes, ids: Whole, chosen: Flags | None) -> Codes:
    """(B, T) ids → (B, T + 1) map numbers: RESET behind each row and wherever ``chosen`` is False."""
    rows, width = ids.shape
    codes = np.full((rows, width + 1), RESET_MAP, np.uint16)
    last = map_of.size - 1
    known = ids
    if ids.size and (int(ids.min()) < 0 or int(ids.max()) > last):
        known = np.where((ids < 0) | (ids > last), last, ids)
    codes[:, :width] = map_of[known]
    if chosen is not None:
        codes[:, :width][~chosen] = RESET_MAP
    return codes


def scan(maps: Maps, codes: Codes) -> RowCounts:
    """Counts over (B, T + 1) map numbers as `code_rows` makes them."""
    rows, width = codes.shape
    flat = np.concatenate([np.full(_LOOK_BACK, RESET_MAP, np.uint16), codes.ravel()])
    own = flat > RESET_MAP
    own[1:] |= own[:-1].copy()
    at = np.flatnonzero(own)
    state = np.zeros(at.size, np.uint8)
    for back in range(_LOOK_BACK, 0, -1):
        state = maps.after[flat[at - back].astype(np.int32) * STRIDE + state]
    here = flat[at]
    step = here.astype(np.int32) * STRIDE + state
    place = at - _LOOK_BACK
    row = place // width
    errors = maps.errors[step]
    wrong = np.flatnonzero(errors)
    return RowCounts(
        errors=_per_row(row[wrong], errors[wrong], rows),
        tails=_per_row(row, (here == RESET_MAP) & (state != 0), rows),
        literals=_per_row(row, maps.literals[step], rows),
        error_rows=row[wrong],
        error_positions=place[wrong] % width,
    )


def _per_row(row: Whole, amount: npt.NDArray[np.generic], rows: int) -> Whole:
    return np.bincount(row, weights=amount.astype(np.float64), minlength=rows).astype(np.int64)
