"""The tokenizers of mistral-common: tekken, and its own around a SentencePiece model."""

from __future__ import annotations

import hashlib
from typing import Any

from rlvitals.probes.vocabulary.sentencepiece_model import find_sentencepiece, model_source
from rlvitals.probes.vocabulary.tiktoken_encoding import find_tiktoken, read_pieces
from rlvitals.probes.vocabulary.vocabulary import Decode, Family, Source, Vocabulary


def find_mistral(tokenizer: Any) -> Source | None:
    """None for what is neither."""
    model = getattr(tokenizer, "_model", None)
    if model is None or not hasattr(tokenizer, "is_special"):
        return None
    if find_tiktoken(model) is not None:
        return Source(
            decode=_decode(tokenizer),
            read=lambda: _read_tekken(tokenizer, model),
            fingerprint=lambda: _fingerprint(tokenizer, model),
        )
    return model_source(model, _decode(tokenizer)) if find_sentencepiece(model) is not None else None


def _decode(tokenizer: Any) -> Decode:
    # whoever passes such a tokenizer has the package
    from mistral_common.tokens.tokenizers.base import SpecialTokenPolicy

    def decode(ids: Any, skip: bool) -> str:
        return str(tokenizer.decode(list(ids), SpecialTokenPolicy.IGNORE if skip else SpecialTokenPolicy.KEEP))

    return decode


def _read_tekken(tokenizer: Any, model: Any) -> Vocabulary:
    special = {i: tokenizer.id_to_piece(i) for i in range(tokenizer.num_special_tokens)}
    ordinary = tokenizer.n_words - tokenizer.num_special_tokens
    return Vocabulary(
        family=Family.BYTE_LEVEL,
        pieces={i: text.encode() for i, text in special.items()}
        | read_pieces(model, ordinary, tokenizer.num_special_tokens),
        special=frozenset(special),
        added=special,
    )


def _fingerprint(tokenizer: Any, model: Any) -> str | None:
    inner = find_tiktoken(model)
    told = inner.fingerprint() if inner else None
    if told is None:
        return None
    special = [tokenizer.id_to_piece(i) for i in range(tokenizer.num_special_tokens)]
    return hashlib.sha256(repr((told, special, tokenizer.n_words)).encode()).hexdigest()
