"""What each id of a tokenizer contributes to the decoded byte stream."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from rlvitals.probes.arguments import VocabularyError

Decode = Callable[[Sequence[int]], str]


class Family(str, Enum):
    """How a tokenizer spells a character that is no piece of its own."""

    BYTE_LEVEL = "byte level"  # pieces are strings of bytes, cut anywhere
    BYTE_FALLBACK = "byte fallback"  # explicit <0x00> … <0xFF> pieces
    PLAIN = "no bytes"  # an unknown token: nothing ill-formed can be spelt


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """``pieces`` maps each id that has a token to its bytes; an id that is not in it is unassigned.

    ``special`` ids are control tokens, ``added`` ids come from outside the base vocabulary (special or not) with
    their text, ``bytes_alone`` are the explicit byte pieces. ``decode`` is the tokenizer's own, specials kept.
    """

    family: Family
    pieces: Mapping[int, bytes]
    special: frozenset[int]
    added: Mapping[int, str]
    bytes_alone: frozenset[int]
    decode: Decode


def read_vocabulary(tokenizer: Any) -> Vocabulary:
    """Reads a fast Hugging Face tokenizer (or a processor that holds one) or a tiktoken ``Encoding``.

    Raises `VocabularyError` for anything else: a tokenizer in pure Python shows its tokens only by decoding them.
    """
    for candidate in (tokenizer, getattr(tokenizer, "tokenizer", None)):
        backend = getattr(candidate, "backend_tokenizer", candidate)
        if hasattr(backend, "get_added_tokens_decoder") and hasattr(backend, "decoder"):
            return _from_hugging_face(backend)
        if hasattr(candidate, "decode_single_token_bytes"):
            return _from_tiktoken(candidate)
    raise VocabularyError(
        "tokenizer", "a fast Hugging Face tokenizer or a tiktoken Encoding", str(type(tokenizer))
    )


def _from_hugging_face(backend: Any) -> Vocabulary:
    decoder = b"" if backend.decoder is None else bytes(backend.decoder.__getstate__())
    tokens: dict[str, int] = backend.get_vocab(with_added_tokens=True)
    added = backend.get_added_tokens_decoder()
    if b'"ByteLevel"' in decoder:
        family, pieces, alone = Family.BYTE_LEVEL, {i: _byte_level(t) for t, i in tokens.items()}, frozenset[int]()
    elif b'"ByteFallback"' in decoder:
        family = Family.BYTE_FALLBACK
        alone = frozenset(i for t, i in tokens.items() if _EXPLICIT_BYTE.fullmatch(t))
        pieces = {i: bytes([int(t[3:5], 16)]) if i in alone else _plain(t) for t, i in tokens.items()}
    else:
        family, pieces, alone = Family.PLAIN, {i: _plain(t) for t, i in tokens.items()}, frozenset[int]()
    return Vocabulary(
        family=family,
        pieces=pieces,
        special=frozenset(i for i, token in added.items() if token.special),
        added={i: token.content for i, token in added.items()},
        bytes_alone=alone,
        decode=lambda ids: str(backend.decode(list(ids), skip_special_tokens=False)),
    )


def _from_tiktoken(encoding: Any) -> Vocabulary:
    special = {encoding.encode_single_token(text): text for text in encoding.special_tokens_set}
    pieces = {}
    for token_id in range(encoding.max_token_value + 1):
        try:
            pieces[token_id] = encoding.decode_single_token_bytes(token_id)
        except KeyError:  # a hole in the vocabulary
            continue
    return Vocabulary(
        family=Family.BYTE_LEVEL,
        pieces=pieces,
        special=frozenset(special),
        added=special,
        bytes_alone=frozenset(),
        decode=lambda ids: str(encoding.decode(list(ids))),
    )


_EXPLICIT_BYTE = re.compile(r"<0x[0-9A-Fa-f]{2}>")
_WORD_MARK = "▁"
_OUTSIDE = "\uffff"


def _plain(token: str) -> bytes:
    return token.replace(_WORD_MARK, " ").encode("utf-8", "surrogatepass")


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


def _byte_level(token: str) -> bytes:
    # a token with any character outside the alphabet is decoded as its own text, which is what the decoder does
    spelt = token.translate(_TO_BYTES)
    return token.encode("utf-8", "surrogatepass") if _OUTSIDE in spelt else spelt.encode("latin-1")
