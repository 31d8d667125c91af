"""Loops: repeated 4-grams, runs of one id, and text that packs too well."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from rlvitals.contract.report import Extreme
from rlvitals.probes.arrays import Flags, Whole, whole
from rlvitals.probes.chosen import chosen_mask
from rlvitals.probes.content import EVERY_ROW, ContentTable
from rlvitals.probes.mixing import STRIDE, Words, mixed
from rlvitals.probes.row_sample import ReadRows, RowSample
from rlvitals.probes.spelling import SpeltRows
from rlvitals.probes.tally import Tally
from rlvitals.probes.uncompiled import uncompiled

GRAM, WINDOW, CHARACTERS = 4, 512, 10_000
LOOPS_FROM_GRAMS, LOOPS_FROM_PACKING = 0.5, 10.0

NO_TEXT = "not measured: without a token table the text of the ids is not known"
# tokens looked at together: few enough for the intermediate arrays to stay in a core's cache
_BLOCK = 1 << 16


@uncompiled
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
    A token that the policy did not choose ends a run and a 4-gram. In a 4-gram the tokens that spell one character
    count as one. Without ``table`` and ``spelt`` the text is not known: then each token counts, the compression
    ratio is missing, and completions loop by their 4-grams alone.
    """
    numbers = whole(ids)
    mask = chosen_mask(chosen, numbers.shape)
    if spelt is None and table is not None:
        spelt = table.spelling.spell(sample.take(numbers, mask, sample_offset))
    read = sample.take(numbers, mask, sample_offset) if spelt is None else spelt.read
    tokens = numbers.size if mask is None else int(np.count_nonzero(mask))
    return tally_loops(read, spelt) + tally_run(_longest_run(numbers, mask, sample_offset), tokens)


def tally_loops(read: ReadRows, spelt: SpeltRows | None) -> Tally:
    """What the completions that are read in full repeat; ``spelt`` is their text where it is known."""
    tally, packed = _packing(spelt)
    total, repeated = _grams(read, None if spelt is None or spelt.reason else spelt.inside)
    loops = repeated > LOOPS_FROM_GRAMS * total
    loops |= False if packed is None else packed
    grams = Tally(
        counts={
            "repetition.completions": read.rows.size,
            "repetition.grams": int(total.sum()),
            "repetition.repeated": int(repeated.sum()),
            "repetition.looping": int(loops.sum()),
        },
        maxima=_worst("repetition.worst_grams", repeated / np.maximum(total, 1), read.samples),
    )
    return grams + tally


def tally_run(longest: Extreme | None, tokens: int) -> Tally:
    """``longest`` run of one id among ``tokens`` chosen ones, in all completions."""
    maxima = {} if longest is None else {"text.longest_run": longest}
    return Tally(counts={"repetition.tokens": tokens}, maxima=maxima)


def _grams(read: ReadRows, starts_inside: Sequence[Flags] | None) -> tuple[Whole, Whole]:
    """Of each completion: 4-grams among its last 512 chosen tokens, and how many of them are repetitions."""
    found = np.zeros((2, read.rows.size), np.int64)
    for row, every_place in enumerate(read.places()):
        places = every_place[-WINDOW:]
        if places.size < GRAM:
            continue
        inside = np.zeros(places.size, np.bool_) if starts_inside is None else starts_inside[row][-WINDOW:]
        stretch = np.concatenate([[0], np.cumsum(np.diff(places) != 1)])
        units, first = _units(read.ids[row, places], inside, stretch)
        last = max(0, units.size - GRAM + 1)
        grams = np.zeros(last, np.uint64)
        for shift in range(GRAM):
            grams = mixed(grams + units[shift : shift + last])
        grams = grams[stretch[first[:last]] == stretch[first[GRAM - 1 :]]]
        found[:, row] = grams.size, grams.size - np.unique(grams).size
    return found[0], found[1]


def _units(ids: Whole, inside: Flags, stretch: Whole) -> tuple[Words, Whole]:
    """Hashes of tokens, and which token each starts with; tokens that spell one character together are one.

    Else a script without tokens of its own, which repeats its few leading bytes, would look like a loop. Two of a
    window's hashes are equal by chance once in 10^14 windows.
    """
    words = mixed(ids.astype(np.uint64))
    inside = inside & np.concatenate([[False], stretch[1:] == stretch[:-1]])
    first = np.flatnonzero(~inside)
    if first.size == ids.size:
        return words, first
    nth = np.arange(ids.size) - np.repeat(first, np.diff(np.append(first, ids.size)))
    return np.add.reduceat(mixed(words + nth.astype(np.uint64) * np.uint64(STRIDE)), first), first


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
        counts=counts, maxima=_worst("repetition.worst_packing", ratio, spelt.read.samples)
    ), ratio > LOOPS_FROM_PACKING


def _longest_run(ids: Whole, mask: Flags | None, offset: int) -> Extreme | None:
    """The longest run of one id, the first of equals."""
    rows, width = ids.shape
    step = max(1, _BLOCK // max(width, 1))
    longest = None
    for start in range(0, rows, step):
        block = slice(start, start + step)
        found = _longest(ids[block], None if mask is None else mask[block])
        if found is not None and (longest is None or found[0] > longest[0]):
            longest = found[0], found[1] + start, found[2]
    if longest is None:
        return None
    length, row, place = longest
    return Extreme(value=float(length), token_id=int(ids[row, place]), position=place, sample=row + offset)


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
