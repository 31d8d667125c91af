"""Text health from token ids, never from decoded strings (decoders drop ids, join across them, and inflate).

N = tokens that the policy chose. A special, unassigned or out-of-range id breaks a character (an error); the end
of the completion, or a token that the policy did not choose, cuts it (no error).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from rlvitals.contract.report import Extreme
from rlvitals.probes.arguments import DtypeError
from rlvitals.probes.arrays import Flags, Whole, whole
from rlvitals.probes.chosen import chosen_mask, within
from rlvitals.probes.decoding import decoded_replacements
from rlvitals.probes.id_sums import IdSums
from rlvitals.probes.scan import RowCounts, code_rows, scan
from rlvitals.probes.tally import Tally
from rlvitals.probes.tokens import FRAGMENTS, TokenClass, TokenTable
from rlvitals.probes.uncompiled import uncompiled
from rlvitals.probes.vocabulary import Family

UTF8_METRICS = (
    "text.invalid_utf8_count",
    "text.invalid_utf8_per_1k",
    "text.invalid_utf8_completions",
    "text.replacement_char_count",
    "text.literal_replacement_per_1k",
    "text.cut_char_completions",
)
DECODED_METRIC = "text.decoded_replacement_count"
BYTE_METRICS = ("text.byte_piece_ratio", "text.byte_fallback_ratio")
NO_BYTES = "this tokenizer has no byte pieces: it cannot spell ill-formed UTF-8"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TextRows:
    """Per completion (B,), for choosing which samples to keep."""

    utf8: RowCounts
    never_trained: Whole

    def worst(self, count: int) -> list[int]:
        """At most ``count`` rows with ill-formed UTF-8 or never-trained ids, the worst first."""
        badness = self.utf8.errors + self.never_trained
        order = np.lexsort((np.arange(badness.size), -badness))
        return [int(row) for row in order[:count] if badness[row]]


def pack(completions: Sequence[Sequence[int]]) -> tuple[Whole, Whole]:
    """Lists of ids of any length → ids (B, T), padded with 0, and lengths (B,).

    Raises `DtypeError` where a completion begins with what is no integer.
    """
    for first in (completion[0] for completion in completions if len(completion)):
        if not hasattr(first, "__index__"):
            raise DtypeError("completions", "integers", type(first).__name__)
    lengths = np.fromiter(map(len, completions), np.int64, len(completions))
    ids = np.zeros((lengths.size, int(lengths.max(initial=0))), np.int64)
    every: Iterable[int] = chain.from_iterable(completions)
    ids[within(lengths, ids.shape[1])] = np.fromiter(every, np.int64, int(lengths.sum()))
    return ids, lengths


@uncompiled
def tally_text(table: TokenTable, ids: Any, chosen: Any, *, sample_offset: int = 0) -> tuple[Tally, TextRows]:
    """Tallies completions ``ids`` (B, T), and says per row what was found.

    ``chosen`` is their lengths (B,), or a mask (B, T) of the tokens that the policy chose where tools wrote some
    of them. ``sample_offset`` is added to rows.
    """
    numbers = whole(ids)
    mask = chosen_mask(chosen, numbers.shape)
    slots = table.slots(numbers)
    utf8 = scan(table.maps, code_rows(table.map_of, slots, mask))
    ids_seen = IdSums.count(
        numbers.ravel() if mask is None else numbers[mask], below=_bound(table, numbers, slots)
    )
    seen = IdCounts.of(table, ids_seen)
    never, first = _never_trained(table, numbers, slots, mask, seen)
    tally = tally_found(
        table,
        utf8,
        seen=seen,
        ids_seen=ids_seen,
        id0=int(ids_seen.amounts[ids_seen.ids == 0].sum()),
        error_ids=numbers[utf8.error_rows, utf8.error_positions],
        first_never=first,
        sample_offset=sample_offset,
    )
    tally += _decoded(table, numbers, mask, utf8)
    return tally, TextRows(utf8=utf8, never_trained=never)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class IdCounts:
    """How many chosen tokens there are of each `TokenClass`, and how many that count for the rates."""

    classes: Whole
    never_trained: int
    byte_pieces: int

    @classmethod
    def of(cls, table: TokenTable, ids_seen: IdSums) -> IdCounts:
        slots, amounts = table.slots(ids_seen.ids), ids_seen.amounts
        classes = np.bincount(table.classes[slots], weights=amounts, minlength=len(TokenClass))
        return cls(
            classes=classes.astype(np.int64),
            never_trained=int(amounts[table.never_trained()[slots]].sum()),
            byte_pieces=int(amounts[table.byte_pieces()[slots]].sum()),
        )


def tally_found(
    table: TokenTable,
    utf8: RowCounts,
    *,
    seen: IdCounts,
    ids_seen: IdSums,
    id0: int,
    error_ids: Whole,
    first_never: tuple[int, int, int] | None,
    sample_offset: int,
) -> Tally:
    """The Tally of what was counted on the host or on a device.

    ``error_ids`` are the ids at ``utf8.error_rows`` and ``error_positions``, ``first_never`` is the row, position
    and id of the first never-trained id.
    """
    tally = Tally(
        counts={
            "text.completions": utf8.errors.size,
            "text.tokens": int(seen.classes.sum()),
            "text.never_trained": seen.never_trained,
            "text.out_of_range": int(seen.classes[TokenClass.OUT_OF_RANGE]),
            "text.id0": id0,
        },
        by_id={"text.top_id_share": ids_seen},
        firsts={} if first_never is None else {"text.never_trained_rate": _at(first_never, 1.0, sample_offset)},
    )
    return tally + _utf8(table, utf8, error_ids, sample_offset) + _byte_pieces(table, seen)


def _at(place: tuple[int, int, int], value: float, offset: int) -> Extreme:
    row, position, token_id = place
    return Extreme(value=value, token_id=token_id, position=position, sample=row + offset)


def _bound(table: TokenTable, ids: Whole, slots: Whole) -> int | None:
    """What all ids are known to be below, from the look that `TokenTable.slots` had at them."""
    return table.rows + 1 if slots is ids else None


def _never_trained(
    table: TokenTable, ids: Whole, slots: Whole, mask: Flags | None, seen: IdCounts
) -> tuple[Whole, tuple[int, int, int] | None]:
    """Count per row and the first such token. The search is made only where there are some, which is rare."""
    if not seen.never_trained:
        return np.zeros(ids.shape[0], np.int64), None
    bad = table.never_trained()[slots]
    bad &= True if mask is None else mask
    row, position = (int(i) for i in np.unravel_index(int(bad.argmax()), bad.shape))
    return bad.sum(axis=1), (row, position, int(ids[row, position]))


def _utf8(table: TokenTable, utf8: RowCounts, error_ids: Whole, offset: int) -> Tally:
    if table.family is Family.PLAIN or table.mismatch:
        return Tally.absent(UTF8_METRICS, f"not measured: {table.mismatch}" if table.mismatch else NO_BYTES)
    return Tally(
        counts={
            "text.errors": int(utf8.errors.sum()),
            "text.literals": int(utf8.literals.sum()),
            "text.error_completions": int((utf8.errors > 0).sum()),
            "text.tail_completions": int((utf8.tails > 0).sum()),
        },
        maxima=_worst_row(utf8, error_ids, offset) if utf8.error_rows.size else {},
    )


def _worst_row(utf8: RowCounts, error_ids: Whole, offset: int) -> dict[str, Extreme]:
    """The completion with the most errors, and the token at which its first error came to light."""
    row = int(utf8.errors.argmax())
    first = int((utf8.error_rows == row).argmax())
    place = row, int(utf8.error_positions[first]), int(error_ids[first])
    return {"text.worst_errors": _at(place, float(utf8.errors[row]), offset)}


def _decoded(table: TokenTable, ids: Whole, mask: Flags | None, utf8: RowCounts) -> Tally:
    if table.mismatch:
        # then only decoding would tell, which takes longer than all else here together
        return Tally.absent((DECODED_METRIC,), f"not measured: {table.mismatch}")
    chosen = np.full(ids.shape[0], ids.shape[1]) if mask is None else mask
    return Tally(counts={"text.decoded": int(decoded_replacements(table, ids, chosen, seen=utf8).sum())})


def _byte_pieces(table: TokenTable, seen: IdCounts) -> Tally:
    if table.family is Family.PLAIN:
        return Tally.absent(BYTE_METRICS, NO_BYTES)
    popular = (TokenClass.BYTE_HIGH,) if table.family is Family.BYTE_FALLBACK else FRAGMENTS
    return Tally(
        counts={
            "text.byte_pieces": seen.byte_pieces,
            "text.byte_fallback": int(seen.classes[list(popular)].sum()),
        }
    )
