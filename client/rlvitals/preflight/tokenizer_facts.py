"""What the checks need to know of a tokenizer."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rlvitals.preflight.spans import cut

EncodeAll = Callable[[Sequence[str]], list[list[int]]]
Decode = Callable[[Sequence[int]], str]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TokenizerFacts:
    """``tokens`` maps each id to its entry of the vocabulary, ``added`` those from outside it to their text.

    ``library`` spells the entries: transformers and tokenizers alike, the others each in its own way. ``base`` is
    the base vocabulary's own entry of an id that an added token uses too. ``encode_all`` adds no special tokens,
    ``encode_whole`` does as the tokenizer is set up; ``decode`` keeps special tokens and leaves spaces alone,
    ``decode_default`` cleans up as configured.
    """

    name: str
    library: str
    source: Any = field(repr=False)
    tokens: Mapping[int, str] = field(repr=False)
    added: Mapping[int, str] = field(default_factory=dict, repr=False)
    flags: Mapping[int, str] = field(default_factory=dict, repr=False)
    base: Mapping[int, str] = field(default_factory=dict, repr=False)
    special: frozenset[int] = frozenset()
    eos: int | None = None
    bos: int | None = None
    pad: int | None = None
    padding_side: str | None = None
    truncation_side: str | None = None
    chat_template: str | None = field(default=None, repr=False)
    encode_all: EncodeAll = field(repr=False)
    encode_whole: Callable[[str], list[int]] = field(repr=False)
    decode: Decode = field(repr=False)
    decode_default: Decode = field(repr=False)

    @property
    def size(self) -> int:
        """One more than the largest id."""
        return max(self.tokens, default=-1) + 1

    @property
    def control(self) -> frozenset[int]:
        """Special ids, and added ones that are spelt like a marker: ``<tool_call>``, ``<|fim_pad|>``."""
        return self.special | {i for i, text in self.added.items() if is_marker(text)}

    def encode(self, text: str) -> list[int]:
        return self.encode_all([text])[0]

    def show(self, ids: Sequence[int]) -> str:
        """``151644 '<|im_start|>', 198 '\\n'``: as decoded, or as the vocabulary spells what is no text."""
        return cut([self._shown(i) for i in ids], "ids")

    def _shown(self, token_id: int) -> str:
        if token_id not in self.tokens:
            return f"{token_id} (no token)"
        text = self.decode([token_id])
        whole = text and "\ufffd" not in text
        return f"{token_id} {text!r}" if whole else f"{token_id} {repr(self.tokens[token_id])[1:-1]}"

    def digests(self) -> dict[str, str]:
        """SHA-256 of the vocabulary, of the added tokens with their flags, and of the chat template."""
        parts: dict[str, object] = {
            "vocabulary": sorted(self.tokens.items()),
            "added tokens": sorted((i, text, self.flags.get(i, "")) for i, text in self.added.items()),
            "chat template": self.chat_template,
        }
        return {name: hashlib.sha256(json.dumps(part).encode()).hexdigest() for name, part in parts.items()}


def is_marker(text: str) -> bool:
    """Spelt with bars or as a thinking or tool tag, as no ordinary text is."""
    inner = text.strip("<>[]/ ")
    barred = inner[:1] in ("|", "｜") and inner[-1:] in ("|", "｜") and len(inner) > 1
    return barred or inner in ("think", "tool_call", "tool_response", "tool_calls", "TOOL_CALLS", "INST")
