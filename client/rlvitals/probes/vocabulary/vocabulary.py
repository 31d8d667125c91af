"""What each id of a tokenizer contributes to the decoded byte stream."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

Decode = Callable[[Sequence[int], bool], str]
"""(ids, whether special tokens are left out) → text"""

# what decoders raise for an id that they do not know
UNDECODABLE = (LookupError, ValueError, TypeError, OverflowError, AttributeError)


class Family(str, Enum):
    """How a tokenizer spells a character that is no piece of its own."""

    BYTE_LEVEL = "byte level"  # pieces are strings of bytes, cut anywhere
    BYTE_FALLBACK = "byte fallback"  # explicit <0x00> … <0xFF> pieces
    PLAIN = "no bytes"  # an unknown token: nothing ill-formed can be spelt
    OPAQUE = "known by its decode alone"  # what an id spells is seen only by decoding it


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """``pieces`` maps each id that has a token to its bytes; an id that is not in it is unassigned.

    ``special`` ids are control tokens, ``added`` ids come from outside the base vocabulary (special or not) with
    their text, ``bytes_alone`` are the explicit byte pieces.
    """

    family: Family
    pieces: Mapping[int, bytes]
    special: frozenset[int]
    added: Mapping[int, str]
    bytes_alone: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A tokenizer that can be read. ``fingerprint`` is a hash of all that its table depends on, or None where
    only reading it would tell.
    """

    decode: Decode
    read: Callable[[], Vocabulary]
    fingerprint: Callable[[], str | None] = lambda: None


EXPLICIT_BYTE = re.compile(r"<0x[0-9A-Fa-f]{2}>")
_WORD_MARK = "▁"
_OUTSIDE = "\uffff"


def plain_piece(token: str) -> bytes:
    """Of a piece that is spelt as text; a lone surrogate is what its escape says, since no decoder mends it."""
    return token.replace(_WORD_MARK, " ").encode("utf-8", "backslashreplace")


def explicit_byte(token: str) -> bytes:
    """Of a piece such as ``<0xE4>``."""
    return bytes([int(token[3:5], 16)])


def byte_alphabet() -> dict[int, str]:
    """The stand-ins of byte-level vocabularies: printable Latin-1 for itself, the rest from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = sorted(set(range(256)) - set(printable))
    return {byte: chr(byte) for byte in printable} | {byte: chr(0x100 + n) for n, byte in enumerate(others)}


class _ToBytes(dict[int, str]):
    """For str.translate: a stand-in to the Latin-1 character of its byte, any other character to ``_OUTSIDE``."""

    def __missing__(self, _: int) -> str:
        return _OUTSIDE


_TO_BYTES = _ToBytes({ord(stand_in): chr(byte) for byte, stand_in in byte_alphabet().items()})


def byte_level_piece(token: str) -> bytes:
    """Of a piece that is spelt in the byte alphabet.

    A token with any character outside it stands for its own text, which is what the decoders do.
    """
    spelt = token.translate(_TO_BYTES)
    return token.encode("utf-8", "surrogatepass") if _OUTSIDE in spelt else spelt.encode("latin-1")
