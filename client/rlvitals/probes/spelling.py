"""The text that ids spell, put together from the tokens' own bytes for the few completions that are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rlvitals.probes.arrays import Flags, Whole
from rlvitals.probes.code_points import Points, points_of
from rlvitals.probes.row_sample import ReadRows
from rlvitals.probes.tokens import TokenClass, TokenTable

_SILENT = (TokenClass.SPECIAL, TokenClass.RESERVED, TokenClass.UNASSIGNED, TokenClass.OUT_OF_RANGE)
_BREAK = b"\n"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SpeltRows:
    """Completions that were spelt.

    ``slots`` are each one's chosen ids as indexes of the token table, ``inside`` says which of them start inside a
    character. ``reason`` says why nothing was spelt.
    """

    read: ReadRows
    slots: tuple[Whole, ...] = ()
    inside: tuple[Flags, ...] = ()
    texts: tuple[str, ...] = ()
    points: tuple[Points, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Spelling:
    """``pieces`` (rows + 1) are the bytes of each id of ``table``; what is no text is a line break.

    ``starts_inside`` says whose first byte continues a character.
    So a special, unassigned or out-of-range id breaks a character, as it does for the UTF-8 signals, and its name
    does not count as writing.
    """

    table: TokenTable
    pieces: Sequence[bytes]
    starts_inside: Flags

    @classmethod
    def of(cls, table: TokenTable) -> Spelling:
        pieces = [_BREAK] * (table.rows + 1)
        for token_id, piece in table.pieces.items():
            if 0 <= token_id < table.rows:
                pieces[token_id] = piece
        for token_id in np.flatnonzero(np.isin(table.classes, _SILENT)).tolist():
            pieces[token_id] = _BREAK
        starts_inside = np.fromiter((b"\x80" <= piece[:1] <= b"\xbf" for piece in pieces), np.bool_, len(pieces))
        return cls(table=table, pieces=pieces, starts_inside=starts_inside)

    def spell(self, read: ReadRows) -> SpeltRows:
        """The text of ``read``. A stretch of tokens that the policy did not choose is one line break."""
        if self.table.mismatch:
            return SpeltRows(read=read, reason=f"not measured: {self.table.mismatch}")
        places = tuple(read.places())
        slots = tuple(self.table.slots(ids[place]) for ids, place in zip(read.ids, places, strict=True))
        texts = tuple(self.text(slot, place) for slot, place in zip(slots, places, strict=True))
        return SpeltRows(
            read=read,
            slots=slots,
            inside=tuple(self.starts_inside[slot] for slot in slots),
            texts=texts,
            points=tuple(map(points_of, texts)),
        )

    def text(self, slots: Whole, places: Whole) -> str:
        """What ``slots`` spell that stood at ``places``; ill-formed bytes become U+FFFD."""
        gaps = np.flatnonzero(np.diff(places) != 1)
        if gaps.size:
            slots = np.insert(slots, gaps + 1, self.table.rows)
        return b"".join(map(self.pieces.__getitem__, slots.tolist())).decode("utf-8", "replace")
