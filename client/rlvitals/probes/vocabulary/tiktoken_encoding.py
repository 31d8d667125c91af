"""tiktoken Encodings."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from rlvitals.probes.vocabulary.vocabulary import Family, Source, Vocabulary


def find_tiktoken(encoding: Any) -> Source | None:
    """None for what is no Encoding. Its decode never leaves special tokens out."""
    if not (hasattr(encoding, "decode_single_token_bytes") and hasattr(encoding, "special_tokens_set")):
        return None
    return Source(
        decode=lambda ids, _: str(encoding.decode(list(ids))),
        read=lambda: _read(encoding),
        fingerprint=lambda: _fingerprint(encoding),
    )


def _read(encoding: Any) -> Vocabulary:
    special = _special(encoding)
    return Vocabulary(
        family=Family.BYTE_LEVEL,
        pieces=read_pieces(encoding, encoding.max_token_value + 1),
        special=frozenset(special),
        added=special,
    )


def read_pieces(encoding: Any, count: int, offset: int = 0) -> dict[int, bytes]:
    """The bytes of ids below ``count``, under numbers from ``offset`` on; holes in the vocabulary are left out."""
    pieces = {}
    for token_id in range(count):
        try:
            pieces[token_id + offset] = encoding.decode_single_token_bytes(token_id)
        except KeyError:
            continue
    return pieces


def _special(encoding: Any) -> dict[int, str]:
    return {encoding.encode_single_token(text): text for text in encoding.special_tokens_set}


def _fingerprint(encoding: Any) -> str | None:
    ranks = getattr(encoding, "_mergeable_ranks", None)
    if not isinstance(ranks, dict):
        return None
    digest = hashlib.sha256(repr(sorted(_special(encoding).items())).encode())
    # lengths beside the bytes, so that no two vocabularies are the same string
    for numbers in (ranks.values(), map(len, ranks)):
        digest.update(np.fromiter(numbers, np.int64, len(ranks)).tobytes())
    digest.update(b"".join(ranks))
    return digest.hexdigest()
