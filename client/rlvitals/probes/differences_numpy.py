"""Differences of two log-probs under the loss mask, in doubles, by blocks of rows; for arrays, without torch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rlvitals.probes.arrays import Floats, Whole

# elements worked on at once: a tenth of the inputs is what the doubles in between may take
CHUNK = 1 << 15

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Block:
    """The tokens of some rows that count: their flat index in (B, T), and the difference of their log-probs."""

    rows: slice
    index: Whole
    difference: Floats
    width: int

    def of(self, values: Array) -> Array:
        """``values`` of these tokens; (B, T) or whatever broadcasts to it, (B,) a value for each row."""
        spread = by_token(values)
        rows = spread[self.rows] if spread.shape[0] > 1 else spread
        shape = (self.rows.stop - self.rows.start, self.width)
        found: Array = np.broadcast_to(rows, shape).reshape(-1)[self.index - self.rows.start * self.width]
        return found

    def peak(self, values: Floats, ids: Array | None) -> list[float]:
        """(largest, flat index, id or -1), -Inf where no token counts."""
        if not values.size:
            return [-np.inf, 0.0, -1.0]
        best = int(values.argmax())
        index = int(self.index[best])
        return [float(values[best]), float(index), float(ids.reshape(-1)[index]) if ids is not None else -1.0]


def blocks(shape: tuple[int, ...]) -> Iterator[slice]:
    """Slices of the rows of (B, T)."""
    rows, width = shape
    step = max(1, CHUNK // max(width, 1))
    for start in range(0, rows if width else 0, step):
        yield slice(start, min(start + step, rows))


def differences(minuend: Array, subtrahend: Array, mask: Array) -> Iterator[Block]:
    """minuend - subtrahend, in doubles, of the tokens under ``mask`` for which both are finite."""
    width = minuend.shape[1]
    for rows in blocks(minuend.shape):
        with np.errstate(invalid="ignore"):
            apart = minuend[rows].astype(np.float64) - subtrahend[rows].astype(np.float64)
        index = np.flatnonzero((mask[rows] != 0) & np.isfinite(apart))
        yield Block(rows, index + rows.start * width, apart.reshape(-1)[index], width)


def by_token(value: Any) -> Array:
    """(B,) → (B, 1), a number → (1, 1), so that it broadcasts over tokens; other shapes as they are."""
    array = np.asarray(value)
    if array.ndim == 0:
        return array.reshape(1, 1)
    return array[:, None] if array.ndim == 1 else array
