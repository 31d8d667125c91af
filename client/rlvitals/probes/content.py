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

CONTROL_METRICS = ("text.control_char_per_1k",)
INVISIBLE_METRICS = ("text.zero_width_per_1k",)
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
        return self.spelling.spell(numbers, chosen_mask(chosen, numbers.shape), sample, sample_offset)

    def watched(self, passed: Collection[int]) -> npt.NDArray[np.uint8]:
        """0 for an id that may stand anywhere, ``SPECIAL`` or ``CONTROL`` for one that may not."""
        kinds = np.where(self.controls > 0, CONTROL, 0).astype(np.uint8)
        kinds[self.special] = SPECIAL
        ids = np.fromiter(passed, np.int64, len(passed))
        kinds[ids[(ids >= 0) & (ids < self.tokens.rows)]] = 0
        return kinds


SPECIAL, CONTROL = 1, 2


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
        spelt = table.spelling.spell(numbers, mask, sample, sample_offset)
    found = _Found.of(table, numbers, mask, {*stop_ids, *allowed_ids})
    tally = Tally(
        counts={
            "content.completions": numbers.shape[0],
            "content.tokens": numbers.size if mask is None else int(np.count_nonzero(mask)),
            "content.special_completions": int(np.unique(found.special_rows).size),
        },
        maxima=_worst("content.worst_special", numbers, found.special_rows, found.special_places, sample_offset),
    )
    return tally + _controls(table, numbers, found, spelt, sample_offset) + tally_scripts(spelt, prompts)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Found:
    """Rows and positions, in order, of special tokens before each completion's last token, and of controls."""

    special_rows: Whole
    special_places: Whole
    control_rows: Whole
    control_places: Whole

    @classmethod
    def of(cls, table: ContentTable, ids: Whole, mask: Flags | None, passed: Collection[int]) -> _Found:
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
        return cls(
            special_rows=row[special],
            special_places=place[special],
            control_rows=row[control],
            control_places=place[control],
        )


def _last(mask: Flags | None, rows: Whole, width: int) -> Whole:
    """Position of the last chosen token of each of ``rows``."""
    if mask is None or not rows.size:
        return np.full(rows.size, width - 1)
    distinct, where = np.unique(rows, return_inverse=True)
    last: Whole = width - 1 - mask[distinct][:, ::-1].argmax(axis=1)
    return last[where]


def _controls(table: ContentTable, ids: Whole, found: _Found, spelt: SpeltRows, offset: int) -> Tally:
    if spelt.reason:
        return Tally.absent((*CONTROL_METRICS, *INVISIBLE_METRICS), spelt.reason)
    held = table.controls[table.tokens.slots(ids[found.control_rows, found.control_places])]
    whole_in_sample = sum(int(table.controls[slots].sum()) for slots in spelt.slots)
    invisible = np.asarray([np.count_nonzero(odd_invisibles(points)) for points in spelt.points], np.int64)
    return Tally(
        counts={
            "content.controls": int(held.sum()),
            "content.spelt_controls": sum(map(count_controls, spelt.points)) - whole_in_sample,
            "content.spelt_tokens": sum(slots.size for slots in spelt.slots),
            "content.invisibles": int(invisible.sum()),
        },
        maxima=_worst("content.worst_controls", ids, found.control_rows, found.control_places, offset)
        | _worst_sample("content.worst_invisibles", spelt, invisible),
    )


def _worst(key: str, ids: Whole, rows: Whole, places: Whole, offset: int) -> dict[str, Extreme]:
    """The row that occurs most often, with the first of its places and the id there."""
    if not rows.size:
        return {}
    distinct, first, count = np.unique(rows, return_index=True, return_counts=True)
    worst = int(count.argmax())
    row, place = int(distinct[worst]), int(places[first[worst]])
    value = float(count[worst])
    return {key: Extreme(value=value, token_id=int(ids[row, place]), position=place, sample=row + offset)}


def _worst_sample(key: str, spelt: SpeltRows, amounts: Whole) -> dict[str, Extreme]:
    if not amounts.any():
        return {}
    worst = int(amounts.argmax())
    return {key: Extreme(value=float(amounts[worst]), sample=int(spelt.samples[worst]))}
