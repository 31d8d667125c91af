"""What the checks need to know of a tokenizer, read once from whatever it is."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlvitals.preflight.spans import cut

EncodeAll = Callable[[Sequence[str]], list[list[int]]]
Decode = Callable[[Sequence[int]], str]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TokenizerFacts:
    """``tokens`` maps each id to its entry of the vocabulary, ``added`` those from outside it to their text.

    ``base`` is the base vocabulary's own entry of an id that an added token uses too. ``encode_all`` adds no
    special tokens and ``encode_whole`` does as the tokenizer is set up; ``decode`` keeps special tokens and leaves
    spaces alone, ``decode_default`` cleans up as configured.
    """

    name: str
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
        return f"{token_id} {text!r}" if whole else f"{token_id} {self.tokens[token_id]}"

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


def read_tokenizer(given: Any, name: str = "tokenizer") -> TokenizerFacts:
    """Reads a Hugging Face tokenizer (fast, slow, or in a processor), a `tokenizers.Tokenizer`, a tiktoken
    Encoding, a sentencepiece processor, a folder, a ``tokenizer.json``, a ``.model`` file or a cached model name.

    Nothing is downloaded. Raises TypeError for anything else, and what the loading library raises.
    """
    if isinstance(given, str | Path):
        return read_tokenizer(_load(Path(given)), str(given))
    inner = getattr(given, "tokenizer", given)  # a processor
    if hasattr(inner, "convert_ids_to_tokens") and hasattr(inner, "get_vocab"):
        return _of_hugging_face(inner, name)
    if hasattr(inner, "get_added_tokens_decoder"):
        return _of_tokenizers(inner, name)
    if hasattr(inner, "decode_single_token_bytes"):
        return _of_tiktoken(inner, name)
    if hasattr(inner, "id_to_piece") and hasattr(inner, "is_control"):
        return _of_sentencepiece(inner, name)
    raise TypeError(
        "tokenizer: expected a Hugging Face, tokenizers, tiktoken or sentencepiece tokenizer, a folder or a file, "
        f"got {type(given).__name__}"
    )


def _load(path: Path) -> Any:
    if path.suffix == ".model" and path.is_file():
        from sentencepiece import SentencePieceProcessor

        return SentencePieceProcessor(model_file=str(path))
    if path.is_file() and not (path.parent / "tokenizer_config.json").exists():
        from tokenizers import Tokenizer

        return Tokenizer.from_file(str(path))
    from transformers import AutoTokenizer

    folder = path.parent if path.is_file() else path
    return AutoTokenizer.from_pretrained(str(folder), local_files_only=True)


def _of_hugging_face(tokenizer: Any, name: str) -> TokenizerFacts:
    added = dict(tokenizer.added_tokens_decoder)
    backend = getattr(tokenizer, "backend_tokenizer", None)
    base = {} if backend is None else backend.get_vocab(with_added_tokens=False)

    def encode_all(texts: Sequence[str]) -> list[list[int]]:
        return list(tokenizer(list(texts), add_special_tokens=False)["input_ids"]) if texts else []

    return TokenizerFacts(
        name=name,
        source=tokenizer,
        tokens={i: text for text, i in tokenizer.get_vocab().items()},
        added={i: token.content for i, token in added.items()},
        flags={i: _flags(token) for i, token in added.items()},
        base={i: text for text, i in base.items() if i in added},
        special=frozenset(tokenizer.all_special_ids) | {i for i, token in added.items() if token.special},
        eos=tokenizer.eos_token_id,
        bos=tokenizer.bos_token_id,
        pad=tokenizer.pad_token_id,
        padding_side=getattr(tokenizer, "padding_side", None),
        truncation_side=getattr(tokenizer, "truncation_side", None),
        chat_template=_default_template(getattr(tokenizer, "chat_template", None)),
        encode_all=encode_all,
        encode_whole=lambda text: list(tokenizer(text)["input_ids"]),
        decode=lambda ids: str(
            tokenizer.decode(list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False)
        ),
        decode_default=lambda ids: str(tokenizer.decode(list(ids), skip_special_tokens=False)),
    )


def _default_template(given: Any) -> str | None:
    if isinstance(given, Mapping):
        given = given.get("default")
    return given if isinstance(given, str) and given else None


def _of_tokenizers(tokenizer: Any, name: str) -> TokenizerFacts:
    added = tokenizer.get_added_tokens_decoder()
    base = tokenizer.get_vocab(with_added_tokens=False)

    def decode(ids: Sequence[int]) -> str:
        return str(tokenizer.decode(list(ids), skip_special_tokens=False))

    return TokenizerFacts(
        name=name,
        source=tokenizer,
        tokens={i: text for text, i in tokenizer.get_vocab(with_added_tokens=True).items()},
        added={i: token.content for i, token in added.items()},
        flags={i: _flags(token) for i, token in added.items()},
        base={i: text for text, i in base.items() if i in added},
        special=frozenset(i for i, token in added.items() if token.special),
        encode_all=lambda texts: [e.ids for e in tokenizer.encode_batch(list(texts), add_special_tokens=False)],
        encode_whole=lambda text: list(tokenizer.encode(text).ids),
        decode=decode,
        decode_default=decode,
    )


def _flags(token: Any) -> str:
    names = ("special", "lstrip", "rstrip", "normalized", "single_word")
    return " ".join(name for name in names if getattr(token, name, False))


def _of_tiktoken(encoding: Any, name: str) -> TokenizerFacts:
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


def _of_sentencepiece(model: Any, name: str) -> TokenizerFacts:
    ids = range(model.vocab_size())
    special = {i: str(model.id_to_piece(i)) for i in ids if model.is_control(i) or model.is_unknown(i)}

    def encode(text: str) -> list[int]:
        return list(model.encode(text))

    def decode(ids: Sequence[int]) -> str:
        return str(model.decode(list(ids)))

    return TokenizerFacts(
        name=name,
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
