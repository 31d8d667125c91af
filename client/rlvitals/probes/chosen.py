"""Which tokens of a batch the policy chose: completions by their lengths, or a mask where tools wrote some."""

from __future__ import annotations

from typing import Any

import numpy as np

from rlvitals.probes.arguments import ShapeError
from rlvitals.probes.arrays import Flags, Whole, flags, whole


def chosen_mask(chosen: Any, shape: tuple[int, ...]) -> Flags | None:
    """``chosen`` as a mask (B, T) of ``shape``; None where the policy chose every token.

    ``chosen`` is lengths (B,) of completions that are padded on the right, or a mask (B, T) of 0 and 1. Raises
    `ShapeError` for anything else, and where the ids are not (B, T).
    """
    if len(shape) != 2:
        raise ShapeError("ids", "(B, T)", str(shape))
    if np.ndim(chosen) == 1:
        lengths = whole(chosen, "chosen")
        if lengths.shape != shape[:1]:
            raise ShapeError("chosen", f"lengths ({shape[0]},) or a mask {shape}", str(lengths.shape))
        return None if (lengths >= shape[1]).all() else within(lengths, shape[1])
    mask = flags(chosen)
    if mask.shape != shape:
        raise ShapeError("chosen", f"lengths ({shape[0]},) or a mask {shape}", str(mask.shape))
    return None if mask.all() else mask


def within(lengths: Whole, width: int) -> Flags:
    """(B,) lengths → (B, width), True before each row's end."""
    inside: Flags = np.arange(width) < lengths[:, None]
    return inside
