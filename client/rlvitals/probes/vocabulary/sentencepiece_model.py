"""SentencePiece processors, with byte fallback or without (BPE and unigram alike)."""

from __future__ import annotations

import hashlib
from typing import Any

from rlvitals.probes.vocabulary.vocabulary import Decode, Family, Source, Vocabulary, explicit_byte, plain_piece


def find_sentencepiece(processor: Any) -> Source | None:
    """None for what is no processor. Its decode never shows control pieces."""
    if not (hasattr(processor, "serialized_model_proto") and hasattr(processor, "is_byte")):
        return None
    return model_source(processor, lambda ids, _: str(processor.decode(list(ids))))


def model_source(processor: Any, decode: Decode) -> Source:
    """Of a processor whose ids something else decodes."""
    return Source(
        decode=decode,
        read=lambda: _read(processor),
        fingerprint=lambda: hashlib.sha256(processor.serialized_model_proto()).hexdigest(),
    )


def _read(processor: Any) -> Vocabulary:
    ids = [i for i in range(processor.get_piece_size()) if not processor.is_unused(i)]
    text = {i: processor.id_to_piece(i) for i in ids}
    alone = frozenset(i for i in ids if processor.is_byte(i))
    control = {i: t for i, t in text.items() if processor.is_control(i) or processor.is_unknown(i)}
    return Vocabulary(
        family=Family.BYTE_FALLBACK if alone else Family.PLAIN,
        pieces={i: explicit_byte(t) if i in alone else plain_piece(t) for i, t in text.items()},
        special=frozenset(control),
        added=control,
        bytes_alone=alone,
    )
