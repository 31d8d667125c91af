"""Loops: repeated 4-grams, runs of one id, and text that packs too well."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from rlvitals.contract.report import Extreme
from rlvitals.probes.arrays import Flags, Whole, whole
from rlvitals.probes.chosen import chosen_mask, positions_in
from rlvitals.probes.content import EVERY_ROW, ContentTable
from rlvitals.probes.row_sample import RowSample
from rlvitals.probes.spelling import SpeltRows
from rlvitals.probes.tally import Tally

GRAM, WINDOW, CHARACTERS = 4, 512, 10_000
LOOPS_FROM_GRAMS, LOOPS_FROM_PACKING = 0.5, 10.0

NO_TEXT = "not measured: without a token table the text of the ids is not known"
# tokens looked at together: few enough for the intermediate arrays to stay in a core's cache
_BLOCK = 1 << 16
_MULTIPLIERS = np.asarray(
    [0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB, 0xD6E8FEB86659FD93], np.uint64
)


def tally_repetition(
    ids: Any,
    chosen: Any,
    *,
    table: ContentTable | None = None,
    sample: RowSample = EVERY_ROW,
    spelt: SpeltRows | None = None,
    sample_offset: int = 0,
) -> Tally:
    """Tallies completions ``ids`` (B, T); ``chosen`` are their lengths (B,) or the mask (B, T) of chosen tokens.

    Runs are looked for in every completion, the rest in those that ``sample`` draws, or in those of ``spelt``.
    A token that the policy did not choose ends a run and a 4-gram. Without ``table`` and ``spelt`` the text is not
    known: the compression ratio is missing and completions loop by their 4-grams alone.
    """
    numbers = whole(ids)
    mask = chosen_mask(chosen, numbers.shape)
    if spelt is None and table is not None:
        spelt = table.spelling.spell(numbers, mask, sample, sample_offset)
    rows = sample.rows(numbers.shape[0], sample_offset) if spelt is None or spelt.reason else spelt.rows
    total, repeated = _grams(numbers, mask, rows)
    loops = repeated > LOOPS_FROM_GRAMS * total
    tally, packed = _packing(spelt)
    loops |= False if packed is None else packed
    grams = Tally(
        counts={
            "repetition.completions": rows.size,
            "repetition.grams": int(total.sum()),
            "repetition.repeated": int(repeated.sum()),
            "repetition.looping": int(loops.sum()),
        },
        maxima=_worst("repetition.worst_grams", repeated / np.maximum(total, 1), rows + sample_offset),
    )
    return grams + tally + _runs(numbers, mask, sample_offset)


def _grams(ids: Whole, mask: Flags | None, rows: Whole) -> tuple[Whole, Whole]:
    """Of each of ``rows``: 4-grams among its last 512 chosen tokens, and how many of them are repetitions."""
    found = np.zeros((2, rows.size), np.int64)
    for index, row in enumerate(rows.tolist()):
        places = positions_in(mask, row, ids.shape[1])[-WINDOW:]
        if places.size < GRAM:
            continue
        # told apart by 64-bit hashes: 512 tokens share one by chance once in 10^14 windows
        mixed = ids[row, places].astype(np.uint64)[:, None] * _MULTIPLIERS
        mixed ^= mixed >> np.uint64(29)
        last = places.size - GRAM + 1
        grams = sum((mixed[start : start + last, start] for start in range(GRAM)), np.zeros(last, np.uint64))
        grams = grams[places[GRAM - 1 :] - places[:last] == GRAM - 1]
        found[:, index] = grams.size, grams.size - np.unique(grams).size
    return found[0], found[1]


def _packing(spelt: SpeltRows | None) -> tuple[Tally, Flags | None]:
    """How well the text packs, and which completions loop by that."""
    if spelt is None or spelt.reason:
        return Tally.absent(("text.compression_ratio",), spelt.reason if spelt else NO_TEXT), None
    texts = [text[-CHARACTERS:].encode("utf-8", "surrogatepass") for text in spelt.texts]
    sizes = np.asarray([len(text) for text in texts], np.int64)
    packed = np.asarray([len(zlib.compress(text)) if text else 0 for text in texts], np.int64)
    ratio = sizes / np.maximum(packed, 1)
    counts = {"repetition.text_bytes": int(sizes.sum()), "repetition.packed_bytes": int(packed.sum())}
    return Tally(
        counts=counts, maxima=_worst("repetition.worst_packing", ratio, spelt.samples)
    ), ratio > LOOPS_FROM_PACKING


def _runs(ids: Whole, mask: Flags | None, offset: int) -> Tally:
    """The longest run of one id, the first of equals."""
    rows, width = ids.shape
    step = max(1, _BLOCK // max(width, 1))
    longest = None
    for start in range(0, rows, step):
        block = slice(start, start + step)
        found = _longest(ids[block], None if mask is None else mask[block])
        if found is not None and (longest is None or found[0] > longest[0]):
            longest = found[0], found[1] + start, found[2]
    tokens = ids.size if mask is None else int(np.count_nonzero(mask))
    if longest is None:
        return Tally(counts={"repetition.tokens": tokens})
    length, row, place = longest
    where = Extreme(value=float(length), token_id=int(ids[row, place]), position=place, sample=row + offset)
    return Tally(counts={"repetition.tokens": tokens}, maxima={"text.longest_run": where})


def _longest(ids: Whole, mask: Flags | None) -> tuple[int, int, int] | None:
    """(length, row, position of its start) of the longest run in a block; None where no token was chosen."""
    same = np.zeros(ids.shape, np.bool_)
    np.equal(ids[:, 1:], ids[:, :-1], out=same[:, :-1])
    if mask is not None:
        same[:, :-1] &= mask[:, 1:] & mask[:, :-1]
    pairs = np.flatnonzero(same)
    if not pairs.size:
        return _first_token(ids, mask)
    starts = np.concatenate([[0], np.flatnonzero(np.diff(pairs) != 1) + 1, [pairs.size]])
    lengths = np.diff(starts)
    best = int(lengths.argmax())
    row, place = divmod(int(pairs[starts[best]]), ids.shape[1])
    return int(lengths[best]) + 1, row, place


def _first_token(ids: Whole, mask: Flags | None) -> tuple[int, int, int] | None:
    if not ids.size or (mask is not None and not mask.any()):
        return None
    row, place = divmod(0 if mask is None else int(mask.argmax()), ids.shape[1])
    return 1, row, place


def _worst(key: str, values: np.ndarray[Any, np.dtype[np.float64]], samples: Whole) -> dict[str, Extreme]:
    if not values.any():
        return {}
    worst = int(values.argmax())
    return {key: Extreme(value=float(values[worst]), sample=int(samples[worst]))}
