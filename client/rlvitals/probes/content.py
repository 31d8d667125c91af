"""What a completion should not hold: control and invisible characters, and special tokens in its middle.

Controls that lie whole in a token are counted by a table of all ids, in every completion. Controls that are spelt
across tokens, invisible characters (healthy or not by what stands beside them) and scripts need the text, which is
put together for sampled completions only.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rlvitals.contract.report import Extreme
from rlvitals.probes.arguments import ShapeError
from rlvitals.probes.arrays import Flags, Whole, whole
from rlvitals.probes.chosen import chosen_mask
from rlvitals.probes.code_points import count_controls, odd_invisibles, points_of
from rlvitals.probes.row_sample import RowSample
from rlvitals.probes.scripts import tally_scripts
from rlvitals.probes.spelling import Spelling, SpeltRows
from rlvitals.probes.tally import Tally
from rlvitals.probes.tokens import TokenClass, TokenTable
from rlvitals.probes.uncompiled import uncompiled

SPELT_METRICS = ("text.control_char_per_1k", "text.zero_width_per_1k")
EVERY_ROW = RowSample()

# the first bytes of every character that `count_controls` may count
_MAYBE_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\xc2\xe2\xee\xef\xf0-\xf4]")
_SILENT = (TokenClass.SPECIAL, TokenClass.ADDED, TokenClass.RESERVED)
# tokens looked at together: few enough for the intermediate arrays to stay in a core's cache
_BLOCK = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ContentTable:
    """What each id holds; built once for a vocabulary. Arrays have ``rows + 1`` entries as `TokenTable`'s do.

    ``special`` are control tokens, ``controls`` counts the control characters that lie whole in a token.
    """

    tokens: TokenTable
    spelling: Spelling
    special: Flags
    controls: npt.NDArray[np.uint8]

    @classmethod
    def of(cls, table: TokenTable) -> ContentTable:
        controls = np.zeros(table.rows + 1, np.uint8)
        for token_id, piece in table.pieces.items():
            if 0 <= token_id < table.rows and _MAYBE_CONTROL.search(piece):
                # a well-formed character inside a piece is decoded as such whatever comes before the piece
                controls[token_id] = min(255, count_controls(points_of(piece.decode("utf-8", "ignore"))))
        controls[np.isin(table.classes, _SILENT)] = 0
        return cls(
            tokens=table,
            spelling=Spelling.of(table),
            special=table.classes == TokenClass.SPECIAL,
            controls=controls,
        )

    def spell(self, ids: Any, chosen: Any, sample: RowSample = EVERY_ROW, *, sample_offset: int = 0) -> SpeltRows:
        """The text of the completions that ``sample`` draws, for several signals together."""
        numbers = whole(ids)
        return self.spelling.spell(sample.take(numbers, chosen_mask(chosen, numbers.shape), sample_offset))

    def watched(self, passed: Collection[int]) -> npt.NDArray[np.uint8]:
        """0 for an id that may stand anywhere, ``SPECIAL`` or ``CONTROL`` for one that may not."""
        kinds = np.where(self.controls > 0, CONTROL, 0).astype(np.uint8)
        kinds[self.special] = SPECIAL
        ids = np.fromiter(passed, np.int64, len(passed))
        kinds[ids[(ids >= 0) & (ids < self.tokens.rows)]] = 0
        return kinds


SPECIAL, CONTROL = 1, 2


@uncompiled
def tally_content(
    table: ContentTable,
    ids: Any,
    chosen: Any,
    *,
    stop_ids: Collection[int] = (),
    allowed_ids: Collection[int] = (),
    prompts: Sequence[str] | None = None,
    sample: RowSample = EVERY_ROW,
    spelt: SpeltRows | None = None,
    sample_offset: int = 0,
) -> Tally:
    """Tallies completions ``ids`` (B, T); ``chosen`` are their lengths (B,) or the mask (B, T) of chosen tokens.

    ``stop_ids`` are all that end a completion or a turn, ``allowed_ids`` other special tokens that may stand in
    the middle (padding, tool calls). ``prompts`` has one text a row, None where they are not known. ``spelt`` is
    what ``table.spell`` gave for the same batch, where it is at hand.
    """
    numbers = whole(ids)
    mask = chosen_mask(chosen, numbers.shape)
    if prompts is not None and len(prompts) != numbers.shape[0]:
        raise ShapeError("prompts", f"one text for each of {numbers.shape[0]} completions", str(len(prompts)))
    if spelt is None:
        spelt = table.spelling.spell(sample.take(numbers, mask, sample_offset))
    special, control, controls = _marks(table, numbers, mask, {*stop_ids, *allowed_ids})
    tokens = numbers.size if mask is None else int(np.count_nonzero(mask))
    tally = tally_marked(special, control, controls, tokens, sample_offset, reason=spelt.reason)
    return tally + tally_spelt(table, spelt, prompts)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowMarks:
    """Per completion (B,): how many tokens of a kind there are, position and id of the first of them."""

    counts: Whole
    positions: Whole
    ids: Whole

    @classmethod
    def of(cls, ids: Whole, rows: Whole, places: Whole) -> RowMarks:
        """From rows and positions of the tokens, in order."""
        distinct, first = np.unique(rows, return_index=True)
        positions, named = np.zeros((2, ids.shape[0]), np.int64)
        positions[distinct] = places[first]
        named[distinct] = ids[distinct, places[first]]
        return cls(counts=np.bincount(rows, minlength=ids.shape[0]), positions=positions, ids=named)

    def worst(self, key: str, offset: int) -> dict[str, Extreme]:
        """The completion with the most, under ``key``."""
        if not self.counts.any():
            return {}
        row = int(self.counts.argmax())
        return {
            key: Extreme(
                value=float(self.counts[row]),
                token_id=int(self.ids[row]),
                position=int(self.positions[row]),
                sample=row + offset,
            )
        }


def tally_marked(
    special: RowMarks, control: RowMarks, controls: int, tokens: int, sample_offset: int, *, reason: str
) -> Tally:
    """What was found in all completions, on the host or on a device.

    ``special`` tokens in the middle, tokens with a ``control`` character, ``controls`` characters in them;
    ``reason`` says why the text of this vocabulary's tokens is not to be trusted.
    """
    tally = Tally(
        counts={
            "content.completions": special.counts.size,
            "content.tokens": tokens,
            "content.special_completions": int(np.count_nonzero(special.counts)),
        },
        maxima=special.worst("content.worst_special", sample_offset),
    )
    if reason:
        return tally
    found = {"content.controls": controls}
    return tally + Tally(counts=found, maxima=control.worst("content.worst_controls", sample_offset))


def tally_spelt(table: ContentTable, spelt: SpeltRows, prompts: Sequence[str] | None) -> Tally:
    """What was found in the text of the completions that are read in full."""
    if spelt.reason:
        return Tally.absent(SPELT_METRICS, spelt.reason) + tally_scripts(spelt, prompts)
    whole_ones = sum(int(table.controls[slots].sum()) for slots in spelt.slots)
    odd = np.asarray([np.count_nonzero(odd_invisibles(points)) for points in spelt.points], np.int64)
    counts = {
        "content.spelt_controls": sum(map(count_controls, spelt.points)) - whole_ones,
        "content.spelt_tokens": sum(slots.size for slots in spelt.slots),
        "content.invisibles": int(odd.sum()),
    }
    maxima = {}
    if odd.any():
        worst = int(odd.argmax())
        maxima["content.worst_invisibles"] = Extreme(
            value=float(odd[worst]), sample=int(spelt.read.samples[worst])
        )
    return Tally(counts=counts, maxima=maxima) + tally_scripts(spelt, prompts)


def _marks(
    table: ContentTable, ids: Whole, mask: Flags | None, passed: Collection[int]
) -> tuple[RowMarks, RowMarks, int]:
    """Special tokens before each completion's last token, tokens with controls, and how many controls."""
    kinds = table.watched(passed)
    step = max(1, _BLOCK // max(ids.shape[1], 1))
    places = [np.empty((3, 0), np.int64)]
    for start in range(0, ids.shape[0], step):
        block = kinds[table.tokens.slots(ids[start : start + step])]
        if mask is not None:
            block[~mask[start : start + step]] = 0
        row, place = np.nonzero(block)
        places.append(np.stack([row + start, place, block[row, place]]))
    row, place, kind = np.concatenate(places, axis=1)
    special, control = (kind == SPECIAL) & (place < _last(mask, row, ids.shape[1])), kind == CONTROL
    held = table.controls[table.tokens.slots(ids[row[control], place[control]])]
    return (
        RowMarks.of(ids, row[special], place[special]),
        RowMarks.of(ids, row[control], place[control]),
        int(held.sum()),
    )


def _last(mask: Flags | None, rows: Whole, width: int) -> Whole:
    """Position of the last chosen token of each of ``rows``."""
    if mask is None or not rows.size:
        return np.full(rows.size, width - 1)
    distinct, where = np.unique(rows, return_inverse=True)
    last: Whole = width - 1 - mask[distinct][:, ::-1].argmax(axis=1)
    return last[where]
