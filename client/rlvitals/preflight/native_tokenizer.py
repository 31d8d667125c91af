"""Facts of tokenizers outside Hugging Face: tiktoken, sentencepiece and mistral-common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rlvitals.preflight.tokenizer_facts import TokenizerFacts


def of_tiktoken(encoding: Any, name: str) -> TokenizerFacts:
    special = {encoding.encode_single_token(text): text for text in encoding.special_tokens_set}
    tokens = dict(special)
    for token in encoding.token_byte_values():
        tokens[encoding.encode_single_token(token)] = token.decode("utf-8", "backslashreplace")

    def encode(text: str) -> list[int]:
        return list(encoding.encode(text, allowed_special="all"))

    def decode(ids: Sequence[int]) -> str:
        return str(encoding.decode(list(ids)))

    return TokenizerFacts(
        name=name,
        library="tiktoken",
        source=encoding,
        tokens=tokens,
        added=special,
        special=frozenset(special),
        eos=next((i for i, text in special.items() if text == "<|endoftext|>"), None),
        encode_all=lambda texts: [encode(text) for text in texts],
        encode_whole=encode,
        decode=decode,
        decode_default=decode,
    )


def of_mistral(given: Any, name: str) -> TokenizerFacts:
    """mistral-common: text never becomes a special token, and there is no template of text."""
    from mistral_common.tokens.tokenizers.base import SpecialTokenPolicy

    tokenizer = getattr(given, "tokenizer", given)
    ids = range(tokenizer.n_words)

    def encode(text: str) -> list[int]:
        return list(tokenizer.encode(text, bos=False, eos=False))

    special = frozenset(i for i in ids if tokenizer.is_special(i))

    def decode(ids: Sequence[int]) -> str:
        # KEEP spells every byte piece as <0xNN>
        policy = SpecialTokenPolicy.KEEP if special.intersection(ids) else SpecialTokenPolicy.IGNORE
        return str(tokenizer.decode(list(ids), policy))

    return TokenizerFacts(
        name=name,
        library="mistral-common",
        source=tokenizer,
        tokens={i: str(tokenizer.id_to_piece(i)) for i in ids},
        special=special,
        eos=_assigned(tokenizer.eos_id),
        bos=_assigned(tokenizer.bos_id),
        pad=_assigned(tokenizer.pad_id),
        encode_all=lambda texts: [encode(text) for text in texts],
        encode_whole=encode,
        decode=decode,
        decode_default=decode,
    )


def of_sentencepiece(model: Any, name: str) -> TokenizerFacts:
    ids = range(model.vocab_size())
    special = {i: str(model.id_to_piece(i)) for i in ids if model.is_control(i) or model.is_unknown(i)}

    def encode(text: str) -> list[int]:
        return list(model.encode(text))

    def decode(ids: Sequence[int]) -> str:
        return str(model.decode(list(ids)))

    return TokenizerFacts(
        name=name,
        library="sentencepiece",
        source=model,
        tokens={i: str(model.id_to_piece(i)) for i in ids},
        special=frozenset(special),
        eos=_assigned(model.eos_id()),
        bos=_assigned(model.bos_id()),
        pad=_assigned(model.pad_id()),
        encode_all=lambda texts: [encode(text) for text in texts],
        encode_whole=encode,
        decode=decode,
        decode_default=decode,
    )


def _assigned(token_id: int) -> int | None:
    return token_id if token_id >= 0 else None
