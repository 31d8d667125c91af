"""Slow Hugging Face tokenizers: those in pure Python, around a SentencePiece model, or around ranks of bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rlvitals.probes.arguments import VocabularyError
from rlvitals.probes.vocabulary.vocabulary import (
    EXPLICIT_BYTE,
    Family,
    Source,
    Vocabulary,
    explicit_byte,
    plain_piece,
)


def find_pure_python(tokenizer: Any) -> Source | None:
    """None for what does not list its tokens."""
    if not (hasattr(tokenizer, "convert_ids_to_tokens") and hasattr(tokenizer, "get_vocab")):
        return None
    return Source(
        decode=lambda ids, skip: str(tokenizer.decode(list(ids), skip_special_tokens=skip)),
        read=lambda: _read(tokenizer),
    )


def _read(tokenizer: Any) -> Vocabulary:
    try:
        tokens: dict[Any, int] = tokenizer.get_vocab()
    except NotImplementedError as error:
        raise VocabularyError("tokenizer", "get_vocab that lists its tokens", str(type(tokenizer))) from error
    told: dict[int, Any] = getattr(tokenizer, "added_tokens_decoder", {})
    special = frozenset(i for i, token in told.items() if token.special)
    special |= frozenset(getattr(tokenizer, "all_special_ids", ()))
    added = {i: str(token) for i, token in told.items()}
    added |= {i: _text(token) for token, i in tokens.items() if i in special and i not in added}
    base = {i: token for token, i in tokens.items() if i not in added}
    alone = frozenset[int]()
    of_bytes = _byte_piece(tokenizer, base)
    if of_bytes is not None:
        family, pieces = Family.BYTE_LEVEL, {i: of_bytes(token) for i, token in base.items()}
    else:
        alone = frozenset(i for i, token in base.items() if EXPLICIT_BYTE.fullmatch(token))
        family = Family.BYTE_FALLBACK if alone else Family.PLAIN
        pieces = {i: explicit_byte(t) if i in alone else plain_piece(t) for i, t in base.items()}
    return Vocabulary(
        family=family,
        pieces=pieces | {i: text.encode("utf-8", "surrogatepass") for i, text in added.items()},
        special=special,
        added=added,
        bytes_alone=alone,
    )


def _text(token: Any) -> str:
    return token.decode("utf-8", "backslashreplace") if isinstance(token, bytes) else str(token)


def _byte_piece(tokenizer: Any, base: Mapping[int, Any]) -> Callable[[Any], bytes] | None:
    """How a token spells its bytes; None where pieces are text."""
    alphabet = getattr(tokenizer, "byte_decoder", None)
    if isinstance(alphabet, dict) and len(alphabet) == 256:
        return lambda token: _spelt(alphabet, token)
    if any(isinstance(token, bytes) for token in base.values()):
        return lambda token: token if isinstance(token, bytes) else str(token).encode()
    # ByT5 and its kin: one token a byte, named by the character of that number
    if getattr(tokenizer, "_utf_vocab_size", None) == 256:
        return lambda token: token.encode("latin-1")
    return None


def _spelt(alphabet: Mapping[str, int], token: str) -> bytes:
    try:
        return bytes(alphabet[character] for character in token)
    except KeyError:
        return token.encode("utf-8", "surrogatepass")
