"""Compares a table with the tokenizer's own decode on random ids, and finds out which kind of decoder that is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from rlvitals.probes.arrays import Whole
from rlvitals.probes.decoder import Damage, Decoder, Dropped
from rlvitals.probes.decoding import decoded_replacements
from rlvitals.probes.token_classes import BYTE_PIECES, TokenClass, mark
from rlvitals.probes.vocabulary import Decode, Family
from rlvitals.probes.vocabulary.vocabulary import UNDECODABLE

if TYPE_CHECKING:
    from rlvitals.probes.tokens import TokenTable

_SHAPE = (64, 64)
_FEW = 16
_ADDED = (TokenClass.SPECIAL, TokenClass.ADDED, TokenClass.RESERVED)

# how a family's decoders show damage, the likeliest first
_DAMAGES: dict[Family, tuple[Damage, ...]] = {
    Family.BYTE_LEVEL: (Damage.SUBPART, Damage.IGNORED),
    Family.BYTE_FALLBACK: (Damage.RUN, Damage.BYTE, Damage.SUBPART, Damage.SPELT, Damage.IGNORED),
    Family.PLAIN: (Damage.SUBPART,),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The decoders (specials kept, specials left out) that agree, or how the table disagrees with every one."""

    decoders: tuple[Decoder, Decoder]
    mismatch: str = ""


def try_decoders(table: TokenTable, decode: Decode, first: tuple[Decoder, Decoder] | None = None) -> Verdict:
    """Tries ``first``, then all decoders that the family may have, on ids drawn by a generator of its own."""
    batches = _draw(table)
    if isinstance(batches, str):
        return Verdict(decoders=(Decoder(), Decoder()), mismatch=batches)
    unassigned = try_unassigned(table, decode)
    found = []
    for skip in (False, True):
        decoder, mismatch = _find(table, decode, batches, skip, unassigned, first)
        if decoder is None:
            return Verdict(decoders=(Decoder(), Decoder()), mismatch=mismatch)
        found.append(decoder)
    return Verdict(decoders=(found[0], found[1]))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Batches:
    """Random ids (rows, 64): ordinary ones, half of them byte pieces; the same with special tokens among them."""

    ordinary: Whole
    special: Whole


def _draw(table: TokenTable) -> _Batches | str:
    kinds = table.classes[: table.rows]
    plain = np.flatnonzero(~mark(kinds, (*_ADDED, TokenClass.UNASSIGNED)))
    if not plain.size:
        return "the vocabulary has no ordinary token"
    draw = np.random.default_rng(20210823)
    ids = _mixed(draw, draw.choice(plain, _SHAPE), np.flatnonzero(mark(kinds, BYTE_PIECES)), 0.5)
    # explicit ASCII bytes lengthen the runs that a ByteFallback decoder judges as a whole
    ids = _mixed(draw, ids, np.flatnonzero(kinds == TokenClass.BYTE_ASCII), 0.1)
    added = np.flatnonzero(mark(kinds, _ADDED))
    return _Batches(ordinary=ids, special=_mixed(draw, ids[:_FEW], added, 0.2))


def _mixed(draw: np.random.Generator, ids: Whole, others: Whole, share: float) -> Whole:
    if not others.size:
        return ids
    return np.where(draw.random(ids.shape) < share, draw.choice(others, ids.shape), ids)


def try_unassigned(table: TokenTable, decode: Decode) -> Dropped:
    """What an id that has no token does to its neighbours."""
    missing = max(table.pieces) + 1
    pieces = np.flatnonzero(mark(table.classes, BYTE_PIECES)).tolist()
    pairs = [*pairwise(np.random.default_rng(7).permutation(pieces)[:_FEW].tolist())]
    try:
        decode([min(table.pieces), missing], False)
        parted = [decode([a, missing, b], False).count("\ufffd") for a, b in pairs]
        joined = [decode([a, b], False).count("\ufffd") for a, b in pairs]
    except UNDECODABLE:
        return Dropped.RAISES
    return Dropped.JOINS if parted == joined else Dropped.BREAKS


def _find(
    table: TokenTable,
    decode: Decode,
    batches: _Batches,
    skip: bool,
    unassigned: Dropped,
    first: tuple[Decoder, Decoder] | None,
) -> tuple[Decoder | None, str]:
    try:
        ordinary = [decode(row, skip) for row in batches.ordinary.tolist()]
        special = [decode(row, skip) for row in batches.special.tolist()]
    except UNDECODABLE as error:
        return None, f"the tokenizer's own decode fails on its own ids: {error!r}"
    mismatch = ""
    for decoder in _candidates(table.family, skip, unassigned, first):
        told = _disagreement(table, decoder, skip, batches.ordinary, ordinary)
        told = told or _hidden(table, decoder, batches.ordinary, ordinary)
        told = told or _disagreement(table, decoder, skip, batches.special, special)
        if not told:
            return decoder, ""
        mismatch = mismatch or told
    return None, mismatch


def _candidates(
    family: Family, skip: bool, unassigned: Dropped, first: tuple[Decoder, Decoder] | None
) -> Iterator[Decoder]:
    if first is not None:
        yield replace(first[skip], unassigned=unassigned)
    for damage in _DAMAGES[family]:
        for special in (Dropped.JOINS, Dropped.BREAKS, Dropped.SHOWN) if skip else (Dropped.SHOWN,):
            yield Decoder(damage=damage, special=special, unassigned=unassigned)


def _disagreement(table: TokenTable, decoder: Decoder, skip: bool, ids: Whole, texts: Sequence[str]) -> str:
    trial = replace(table, decoders=(decoder, decoder))
    counts = decoded_replacements(trial, ids, np.full(ids.shape[0], ids.shape[1]), skip_special=skip)
    for count, text in zip(counts.tolist(), texts, strict=True):
        seen = text.count("\ufffd")
        if seen != count:
            return f"the token table counts {count} U+FFFD where the tokenizer's own decode shows {seen}"
    return ""


def _hidden(table: TokenTable, decoder: Decoder, ids: Whole, texts: Sequence[str]) -> str:
    """Where nothing is printed for damage, counts prove little: the texts themselves must be as expected."""
    if decoder.damage is Damage.IGNORED and not _is_ignored(table, ids, texts):
        return "the tokenizer's own decode hides what is ill-formed"
    if decoder.damage is Damage.SPELT and "<0x" not in texts[0]:
        return "the tokenizer's own decode hides its byte pieces"
    return ""


def _is_ignored(table: TokenTable, ids: npt.NDArray[np.int64], texts: Sequence[str]) -> bool:
    joined = [b"".join(table.pieces[i] for i in row).decode("utf-8", "ignore") for row in ids.tolist()]
    return [text.strip() for text in texts] == [text.strip() for text in joined]
