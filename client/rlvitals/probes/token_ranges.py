"""Ranges of ids by which a user overrides what the vocabulary says, for people who know better.

They replace the classes for the metrics that they name and for nothing else, and what they hold is told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from rlvitals.probes.arguments import ProbeArgumentError
from rlvitals.probes.arrays import Flags
from rlvitals.probes.token_classes import BYTE_PIECES, NEVER_TRAINED, TokenClass, mark

Ranges = Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRanges:
    """Ranges ``(first, last)``, both ends included; None leaves it to the vocabulary.

    ``byte_ids`` stand in for the byte pieces in ``text.byte_piece_ratio``, ``unassigned_ids`` and
    ``reserved_ids`` for the ids without a token and the placeholders in ``text.never_trained_rate``.
    No range is ever called byte fallback: ``text.byte_fallback_ratio`` is counted by the vocabulary alone.

    Raises `ProbeArgumentError` for a range whose last id is before its first, or that is negative.
    """

    byte_ids: Ranges | None = None
    unassigned_ids: Ranges | None = None
    reserved_ids: Ranges | None = None

    def __post_init__(self) -> None:
        for name, ranges in self.given().items():
            for pair in ranges:
                if len(pair) != 2 or not 0 <= pair[0] <= pair[1]:
                    raise ProbeArgumentError(name, "ranges (first, last) with 0 <= first <= last", repr(pair))

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> TokenRanges:
        """From settings, where ``"auto"`` or nothing leaves it to the vocabulary; other keys are refused."""
        known = [field.name for field in fields(cls)]
        for name in settings:
            if name not in known:
                raise ProbeArgumentError(str(name), f"one of {', '.join(known)}", "a name that is not known")
        return cls(**{name: None if value in ("auto", None) else value for name, value in settings.items()})

    def given(self) -> dict[str, Ranges]:
        """Those that override something, by name."""
        every = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: ranges for name, ranges in every.items() if ranges is not None}


def byte_pieces(classes: npt.NDArray[np.uint8], ranges: TokenRanges) -> Flags:
    """Per id (rows + 1,): whether ``text.byte_piece_ratio`` counts it."""
    return _either(classes, BYTE_PIECES, ranges.byte_ids)


def never_trained(classes: npt.NDArray[np.uint8], ranges: TokenRanges) -> Flags:
    """Per id (rows + 1,): whether ``text.never_trained_rate`` counts it; ids out of range always do."""
    if ranges.unassigned_ids is None and ranges.reserved_ids is None:
        return _either(classes, NEVER_TRAINED, None)
    flags = _either(classes, (TokenClass.UNASSIGNED,), ranges.unassigned_ids)
    flags |= _either(classes, (TokenClass.RESERVED,), ranges.reserved_ids)
    flags[-1] = True
    return flags


def _either(classes: npt.NDArray[np.uint8], kinds: Sequence[TokenClass], ranges: Ranges | None) -> Flags:
    if ranges is None:
        return mark(classes, kinds)
    flags = np.zeros(classes.size, bool)
    for first, last in ranges:
        flags[:-1][first : last + 1] = True
    return flags


# name of the range: (what it ought to hold, the classes that are so, what to say where it holds none)
_HOLDS: dict[str, tuple[str, tuple[TokenClass, ...], str]] = {
    "byte_ids": ("byte pieces", BYTE_PIECES, "this is not a byte range of this tokenizer"),
    "unassigned_ids": ("unassigned", (TokenClass.UNASSIGNED,), "every id of this range has a token"),
    "reserved_ids": ("reserved", (TokenClass.RESERVED,), "this range holds no placeholder of this tokenizer"),
}


def tell_ranges(classes: npt.NDArray[np.uint8], ranges: TokenRanges) -> str:
    """What each range holds, a line each; "" where nothing is overridden. ``classes`` are those of all rows."""
    lines = [
        _told(classes, first, last, *_HOLDS[name])
        for name, pairs in ranges.given().items()
        for first, last in pairs
    ]
    return "\n".join(lines)


def _told(
    classes: npt.NDArray[np.uint8], first: int, last: int, noun: str, kinds: tuple[TokenClass, ...], if_none: str
) -> str:
    counts = np.bincount(classes[first : last + 1], minlength=len(TokenClass))
    counts[TokenClass.OUT_OF_RANGE] += last + 1 - max(first, min(last + 1, classes.size))
    held = int(counts[list(kinds)].sum())
    parts = [
        f"{counts[kind]:,} {kind.name.lower().replace('_', ' ')}"
        for kind in TokenClass
        if counts[kind] and kind not in kinds
    ]
    return f"{first}-{last}: " + ", ".join([*parts, f"{held:,} {noun}"]) + ("" if held else f" - {if_none}")
