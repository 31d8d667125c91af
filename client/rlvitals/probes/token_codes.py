"""From the pieces of a vocabulary to arrays by id: its class, and what its bytes do to a UTF-8 decoder."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rlvitals.probes.arrays import Flags
from rlvitals.probes.token_classes import TokenClass, added_class, byte_class, piece_class
from rlvitals.probes.utf8 import RESET, TRIVIAL, Maps, TokenMap, token_map
from rlvitals.probes.vocabulary import Family, Vocabulary

DROP = int(np.iinfo(np.uint16).max)
"""The number of a map that is none: the id has no bytes, and what is around it joins."""

_REPLACEMENT = "\ufffd".encode()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TokenCodes:
    """Arrays by id, (rows + 1,); the last entry stands for ids out of range.

    ``map_of`` numbers the ``maps`` that count ill-formed UTF-8, where added tokens break a character whatever
    their text. ``spelt`` numbers those that a decoder sees, for which added tokens are their bytes; it is the
    same array where that is no difference. ``special`` ids are left out where a decoder skips special tokens.
    """

    classes: npt.NDArray[np.uint8]
    map_of: npt.NDArray[np.uint16]
    spelt: npt.NDArray[np.uint16]
    special: Flags
    maps: Maps


def code_ids(vocabulary: Vocabulary, rows: int) -> TokenCodes:
    """Ids from ``rows`` on are out of range, whatever the vocabulary says."""
    pieces = {i: piece for i, piece in vocabulary.pieces.items() if 0 <= i < rows}
    added = {i: text for i, text in vocabulary.added.items() if i in pieces}
    classes = np.full(rows + 1, TokenClass.UNASSIGNED, np.uint8)
    classes[np.fromiter(pieces, np.int64, len(pieces))] = TokenClass.TEXT
    classes[rows] = TokenClass.OUT_OF_RANGE
    special = np.zeros(rows + 1, bool)
    special[[i for i in vocabulary.special if i in pieces]] = True
    map_of = np.zeros(rows + 1, np.uint16)
    maps: dict[TokenMap, int] = {TRIVIAL: 0, RESET: 1}
    # by far the most pieces are ASCII, and nothing more is to be said of them
    others = {i for i, piece in pieces.items() if not piece.isascii()} | (vocabulary.bytes_alone & pieces.keys())
    # in order, so that the same vocabulary gives the same numbers whatever order it was listed in
    for token_id in sorted(others - added.keys()):
        piece = pieces[token_id]
        classes[token_id], whole = _class(vocabulary, token_id, piece)
        if not whole:
            map_of[token_id] = maps.setdefault(token_map(piece), len(maps))
    for token_id, text in added.items():
        classes[token_id] = added_class(text, token_id in vocabulary.special)
    spelt = _spell(pieces, added, map_of, maps)
    return TokenCodes(classes=classes, map_of=map_of, spelt=spelt, special=special, maps=Maps.of(list(maps)))


def _class(vocabulary: Vocabulary, token_id: int, piece: bytes) -> tuple[TokenClass, bool]:
    """Its class, and whether it is whole text without U+FFFD."""
    if vocabulary.family is Family.OPAQUE:
        # where in a character it stands cannot be seen: it may both start and end inside one
        return (TokenClass.FRAG_BOTH if _REPLACEMENT in piece else TokenClass.TEXT), True
    if token_id in vocabulary.bytes_alone:
        kind = byte_class(piece[0])
        return kind, kind is TokenClass.BYTE_ASCII
    kind = piece_class(piece)
    return kind, kind is TokenClass.TEXT and _REPLACEMENT not in piece


def _spell(
    pieces: dict[int, bytes], added: dict[int, str], map_of: npt.NDArray[np.uint16], maps: dict[TokenMap, int]
) -> npt.NDArray[np.uint16]:
    spelt = {i: DROP for i, piece in pieces.items() if not piece}
    for token_id in sorted(added):
        step = token_map(pieces[token_id])
        if pieces[token_id] and step != TRIVIAL:
            spelt[token_id] = maps.setdefault(step, len(maps))
    if not spelt:
        return map_of
    copy: npt.NDArray[np.uint16] = map_of.copy()
    copy[list(spelt)] = list(spelt.values())
    return copy
