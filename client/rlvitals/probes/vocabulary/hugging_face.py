"""Fast Hugging Face tokenizers, and `tokenizers.Tokenizer` itself."""

from __future__ import annotations

import hashlib
from typing import Any

from rlvitals.probes.vocabulary.vocabulary import (
    EXPLICIT_BYTE,
    Family,
    Source,
    Vocabulary,
    byte_level_piece,
    explicit_byte,
    plain_piece,
)


def find_hugging_face(tokenizer: Any) -> Source | None:
    """None for what has no backend in Rust."""
    backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if not (hasattr(backend, "get_added_tokens_decoder") and hasattr(backend, "decoder")):
        return None
    return Source(
        decode=lambda ids, skip: str(tokenizer.decode(list(ids), skip_special_tokens=skip)),
        read=lambda: _read(backend),
        fingerprint=lambda: hashlib.sha256(backend.to_str().encode("utf-8", "surrogatepass")).hexdigest(),
    )


def _read(backend: Any) -> Vocabulary:
    decoder = b"" if backend.decoder is None else bytes(backend.decoder.__getstate__())
    tokens: dict[str, int] = backend.get_vocab(with_added_tokens=True)
    added = backend.get_added_tokens_decoder()
    alone = frozenset[int]()
    if b'"ByteLevel"' in decoder:
        family, pieces = Family.BYTE_LEVEL, {i: byte_level_piece(t) for t, i in tokens.items()}
    elif b'"ByteFallback"' in decoder:
        family = Family.BYTE_FALLBACK
        alone = frozenset(i for t, i in tokens.items() if EXPLICIT_BYTE.fullmatch(t))
        pieces = {i: explicit_byte(t) if i in alone else plain_piece(t) for t, i in tokens.items()}
    else:
        family, pieces = Family.PLAIN, {i: plain_piece(t) for t, i in tokens.items()}
    return Vocabulary(
        family=family,
        pieces=pieces,
        special=frozenset(i for i, token in added.items() if token.special),
        added={i: token.content for i, token in added.items()},
        bytes_alone=alone,
    )
