"""What an id of a vocabulary is, by the bytes that it stands for."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from rlvitals.probes.arrays import Flags
from rlvitals.probes.utf8 import State, run


class TokenClass(IntEnum):
    """What an id is. Fragments are pieces of byte-level vocabularies that are not whole text."""

    TEXT = 0
    SPECIAL = 1
    ADDED = 2
    RESERVED = 3
    BYTE_ASCII = 4
    BYTE_HIGH = 5
    FRAG_OPEN = 6
    FRAG_CONT = 7
    FRAG_CLOSE = 8
    FRAG_BOTH = 9
    FRAG_ILL = 10
    UNASSIGNED = 11
    OUT_OF_RANGE = 12


FRAGMENTS = (
    TokenClass.FRAG_OPEN,
    TokenClass.FRAG_CONT,
    TokenClass.FRAG_CLOSE,
    TokenClass.FRAG_BOTH,
    TokenClass.FRAG_ILL,
)
BYTE_PIECES = (TokenClass.BYTE_HIGH, *FRAGMENTS)
NEVER_TRAINED = (TokenClass.RESERVED, TokenClass.UNASSIGNED, TokenClass.OUT_OF_RANGE)

_PLACEHOLDER = re.compile(
    r"<\|reserved_special_token_\d+\|>|<\|reserved_\d+\|>|<unused\d+>|\[unused\d+\]|<SPECIAL_\d+>|\[control_\d+\]"
    r"|<\|extra_\d+\|>|<｜place▁holder▁no▁\d+｜>"
)


def mark(classes: npt.NDArray[np.uint8], kinds: Iterable[TokenClass]) -> Flags:
    """Whether each is one of ``kinds``; many times quicker than a search of sets."""
    among = np.zeros(len(TokenClass), bool)
    among[list(kinds)] = True
    flags: Flags = among[classes]
    return flags


def added_class(text: str, special: bool) -> TokenClass:
    """Of a token that comes from outside the base vocabulary, by its text."""
    if _PLACEHOLDER.fullmatch(text):
        return TokenClass.RESERVED
    return TokenClass.SPECIAL if special else TokenClass.ADDED


def byte_class(byte: int) -> TokenClass:
    """Of an explicit byte piece such as ``<0xE4>``."""
    return TokenClass.BYTE_ASCII if byte < 0x80 else TokenClass.BYTE_HIGH


def piece_class(piece: bytes) -> TokenClass:
    """Of a piece of the base vocabulary, by its bytes."""
    try:
        piece.decode()
    except UnicodeDecodeError:
        return _fragment(piece)
    return TokenClass.TEXT


def _fragment(piece: bytes) -> TokenClass:
    leading = next((n for n, byte in enumerate(piece) if not 0x80 <= byte <= 0xBF), len(piece))
    state, errors, _ = run(piece[leading:])
    if errors or leading > 3:
        return TokenClass.FRAG_ILL
    if leading == len(piece):
        return TokenClass.FRAG_CONT
    if state == State.BORDER:
        return TokenClass.FRAG_CLOSE
    return TokenClass.FRAG_BOTH if leading else TokenClass.FRAG_OPEN
