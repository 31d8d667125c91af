"""Tokenizers that show their tokens only by decoding them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from rlvitals.probes.arguments import VocabularyError
from rlvitals.probes.vocabulary.vocabulary import UNDECODABLE, Decode, Family, Source, Vocabulary


def find_black_box(tokenizer: Any, rows: int | None) -> Source | None:
    """None for what cannot decode; raises `VocabularyError` where nothing says how many ids there are."""
    if not callable(getattr(tokenizer, "decode", None)):
        return None
    count = _count(tokenizer, rows)
    decode = _decode(tokenizer)
    special = frozenset(getattr(tokenizer, "all_special_ids", None) or ())
    return Source(decode=decode, read=lambda: _read(decode, range(count), special))


def _count(tokenizer: Any, rows: int | None) -> int:
    """The largest number that the tokenizer tells, since some leave added tokens out, else ``rows``."""
    given = [getattr(tokenizer, name, None) for name in ("vocab_size", "n_vocab", "n_words", "__len__")]
    told = [value() if callable(value) else value for value in given]
    count = max((value for value in told if isinstance(value, int)), default=0) or rows
    if not count:
        expected = "a vocabulary, or rows to say how many ids there are"
        raise VocabularyError("tokenizer", expected, str(type(tokenizer)))
    return count


def _decode(tokenizer: Any) -> Decode:
    try:
        tokenizer.decode([0], skip_special_tokens=False)
    except UNDECODABLE:
        return lambda ids, _: str(tokenizer.decode(list(ids)))
    return lambda ids, skip: str(tokenizer.decode(list(ids), skip_special_tokens=skip))


def _read(decode: Decode, ids: Iterable[int], special: frozenset[int]) -> Vocabulary:
    pieces = _pieces(decode, ids)
    # an id that prints nothing is no control token for that: decoders also strip what is only space
    known = {i: pieces[i].decode("utf-8", "replace") for i in special if i in pieces}
    return Vocabulary(family=Family.OPAQUE, pieces=pieces, special=frozenset(known), added=known)


def _pieces(decode: Decode, ids: Iterable[int]) -> dict[int, bytes]:
    pieces = {}
    for token_id in ids:
        try:
            pieces[token_id] = decode([token_id], False).encode("utf-8", "surrogatepass")
        except UNDECODABLE:
            continue
    return pieces


def see_by_decoding(vocabulary: Vocabulary, decode: Decode) -> Vocabulary:
    """The same ids, with what decoding each base token alone shows in place of its bytes."""
    base = [i for i in vocabulary.pieces if i not in vocabulary.added]
    pieces = {**vocabulary.pieces, **_pieces(decode, base)}
    return replace(vocabulary, family=Family.OPAQUE, pieces=pieces, bytes_alone=frozenset())
