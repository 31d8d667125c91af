"""How many U+FFFD the tokenizer's own decode would print, counted from ids without decoding them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rlvitals.probes.arrays import Flags, Whole, whole
from rlvitals.probes.chosen import chosen_mask
from rlvitals.probes.decoder import Damage, Decoder, Dropped
from rlvitals.probes.scan import LOOK_BACK, RESET_MAP, TRIVIAL_MAP, Codes, RowCounts, code_rows, scan
from rlvitals.probes.token_classes import FRAGMENTS, TokenClass, mark
from rlvitals.probes.token_codes import DROP
from rlvitals.probes.utf8 import STRIDE, Maps, State

if TYPE_CHECKING:
    from rlvitals.probes.tokens import TokenTable

_LARGEST = 1 << 32


def decoded_replacements(
    table: TokenTable, ids: Any, chosen: Any, *, skip_special: bool = True, seen: RowCounts | None = None
) -> Whole:
    """Per completion (B,): U+FFFD in ``tokenizer.decode(completion, skip_special_tokens=skip_special)``, exactly.

    ``ids`` (B, T), ``chosen`` their lengths (B,) or a mask (B, T), of which each stretch counts as decoded apart.
    Ids that make decode raise count as if they were not there, see `undecodable`. ``seen``, the counts of
    `scan.scan` of the same tokens, saves looking again at completions that are well-formed.

    Raises `ShapeError` and `DtypeError` for arguments of another shape or kind.
    """
    numbers = whole(ids, "ids")
    mask = chosen_mask(chosen, numbers.shape)
    decoder = table.decoders[skip_special]
    if decoder.damage is Damage.SEEN:
        return _by_decoding(table, numbers, mask, skip_special)
    slots = table.slots(numbers)
    seen = seen or scan(table.maps, code_rows(table.map_of, slots, mask))
    counts: Whole = seen.literals.copy()
    if decoder.damage not in (Damage.IGNORED, Damage.SPELT):
        counts += seen.errors + seen.tails
    if table.spelt is table.map_of and not (counts.any() or seen.error_rows.size):
        return counts
    codes_of = _codes_of(table, decoder)
    rows = _to_recount(table, decoder, slots, seen, codes_of)
    if rows.size:
        counts[rows] = _count(table, decoder, codes_of, slots[rows], None if mask is None else mask[rows])
    return counts


def _to_recount(table: TokenTable, decoder: Decoder, slots: Whole, seen: RowCounts, codes_of: Codes) -> Whole:
    """Rows in which this decoder may print another number than that of ill-formed subparts."""
    if table.spelt is not table.map_of:
        return np.arange(slots.shape[0])
    if decoder.damage is Damage.SPELT:
        return np.flatnonzero(seen.literals)
    if decoder.damage in (Damage.SUBPART, Damage.IGNORED):
        # an id that prints nothing matters only inside a character, where it was counted as an error
        joins = codes_of[slots[seen.error_rows, seen.error_positions]] == DROP
        return np.unique(seen.error_rows[joins])
    return np.flatnonzero(seen.errors + seen.tails)


def undecodable(table: TokenTable, ids: Any, chosen: Any, *, skip_special: bool = True) -> Flags:
    """Per completion (B,): whether the tokenizer's own decode would raise instead of returning text."""
    numbers = whole(ids, "ids")
    mask = chosen_mask(chosen, numbers.shape)
    bad = (numbers < 0) | (numbers >= _LARGEST)
    if table.decoders[skip_special].unassigned is Dropped.RAISES:
        bad |= _no_token(table)[table.slots(numbers)]
    return np.asarray((bad if mask is None else bad & mask).any(axis=1))


def _no_token(table: TokenTable) -> Flags:
    return mark(table.classes, (TokenClass.UNASSIGNED, TokenClass.OUT_OF_RANGE))


def _count(table: TokenTable, decoder: Decoder, codes_of: Codes, slots: Whole, mask: Flags | None) -> Whole:
    codes = code_rows(codes_of, slots, mask)
    if decoder.damage in (Damage.SUBPART, Damage.IGNORED):
        found = scan(table.maps, _without_dropped(codes)[0])
        total: Whole = found.literals
        return total if decoder.damage is Damage.IGNORED else total + found.errors + found.tails
    alone = np.zeros(codes.shape, bool)
    alone[:, :-1] = mark(table.classes, (TokenClass.BYTE_ASCII, TokenClass.BYTE_HIGH))[slots]
    alone &= codes != RESET_MAP
    codes, alone = _without_dropped(codes, alone)
    in_text = table.maps.literals[codes.astype(np.int64) * STRIDE] * ~alone
    literals: Whole = in_text.sum(axis=1, dtype=np.int64)
    if decoder.damage is Damage.SPELT or not alone.any():
        return literals
    return literals + _in_runs(table.maps, codes, alone, decoder.damage)


def _codes_of(table: TokenTable, decoder: Decoder) -> Codes:
    """(rows + 1,) the map of each id as this decoder sees it, ``DROP`` where what is around it joins."""
    codes: Codes = table.spelt.copy()
    if decoder.special in (Dropped.JOINS, Dropped.BREAKS):
        codes[table.special] = DROP if decoder.special is Dropped.JOINS else TRIVIAL_MAP
    codes[_no_token(table)] = TRIVIAL_MAP if decoder.unassigned is Dropped.BREAKS else DROP
    return codes


def _without_dropped(codes: Codes, alone: Flags | None = None) -> tuple[Codes, Flags]:
    """The same rows with what is dropped taken out, and filled up behind."""
    kept = codes != DROP
    flags_of = np.zeros(codes.shape, bool) if alone is None else alone
    if kept.all():
        return codes, flags_of
    within = np.arange(codes.shape[1]) < kept.sum(axis=1)[:, None]
    packed, packed_flags = np.full(codes.shape, RESET_MAP, np.uint16), np.zeros(codes.shape, bool)
    packed[within], packed_flags[within] = codes[kept], flags_of[kept]
    return packed, packed_flags


# bytes that a character still needs after its first, by the state in which that leaves the decoder
_NEEDS = np.zeros(STRIDE, np.int64)
_NEEDS[State.ONE] = 1
_NEEDS[[State.TWO, State.AFTER_E0, State.AFTER_ED, State.AFTER_EF]] = 2
_NEEDS[[State.AFTER_F0, State.AFTER_F1_F3, State.AFTER_F4]] = 3


def _in_runs(maps: Maps, codes: Codes, alone: Flags, damage: Damage) -> Whole:
    """U+FFFD from runs of byte pieces; a run ends at any other piece and at the end of its row."""
    at = np.flatnonzero(alone)
    padded = np.concatenate([np.full(LOOK_BACK, RESET_MAP, np.uint16), codes.ravel()]).astype(np.int64) * STRIDE
    state = maps.after[padded[at]]
    for back in range(1, LOOK_BACK):
        state = maps.after[padded[at + back] + state]
    here = padded[at + LOOK_BACK]
    step = here + state
    errors = maps.errors[step].astype(np.int64)
    start = np.flatnonzero(np.diff(at, prepend=-2) != 1)
    length = np.diff(start, append=at.size)
    literals = np.add.reduceat(maps.literals[step].astype(np.int64), start)
    if damage is Damage.RUN:
        bad = (np.add.reduceat(errors, start) > 0) | (maps.after[step[start + length - 1]] != State.BORDER)
        amount = np.where(bad, length, literals)
    else:
        amount = length - np.add.reduceat(
            _well_formed(maps, here, errors, np.repeat(start + length, length)), start
        )
        amount += literals
    return np.bincount(at[start] // codes.shape[1], weights=amount, minlength=codes.shape[0]).astype(np.int64)


def _well_formed(maps: Maps, here: Whole, errors: Whole, end: Whole) -> Whole:
    """At the first byte of each whole character how many bytes it has, else 0; ``end`` is where each run ends."""
    place = np.arange(here.size)
    needs = _NEEDS[maps.after[here + State.BORDER]]
    last = place + needs
    before = np.concatenate([[0], np.cumsum(errors)])
    first = (needs > 0) | (here == TRIVIAL_MAP * STRIDE)
    whole_one = first & (last < end) & (before[np.minimum(last + 1, here.size)] == before[place + 1])
    return np.where(whole_one, needs + 1, 0)


def _by_decoding(table: TokenTable, ids: Whole, mask: Flags | None, skip_special: bool) -> Whole:
    counts = np.zeros(ids.shape[0], np.int64)
    if table.decode is None:
        raise RuntimeError("a table that is known by its tokenizer's decode alone was read without it")
    suspect = mark(table.classes, FRAGMENTS)[table.slots(ids)]
    suspect &= True if mask is None else mask
    for row in np.flatnonzero(suspect.any(axis=1)).tolist():
        written_ids = ids[row] if mask is None else ids[row][mask[row]]
        known = [i for i in written_ids.tolist() if i in table.pieces]
        counts[row] = table.decode(known, skip_special).count("\ufffd")
    return counts
