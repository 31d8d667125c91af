"""Reads a tokenizer once, whatever it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rlvitals.preflight.file_kind import check_regular
from rlvitals.preflight.native_tokenizer import of_mistral, of_sentencepiece, of_tiktoken
from rlvitals.preflight.tokenizer_facts import TokenizerFacts

__all__ = ["TokenizerFacts", "read_tokenizer"]


def read_tokenizer(given: Any, name: str = "tokenizer") -> TokenizerFacts:
    """Reads a tokenizer of Hugging Face (fast, slow, or in a processor), `tokenizers`, tiktoken, sentencepiece or
    mistral-common, a folder, a ``tokenizer.json``, a ``.model`` file or the name of a cached model.

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
        return of_tiktoken(inner, name)
    if hasattr(inner, "id_to_piece") and hasattr(inner, "is_control"):
        return of_sentencepiece(inner, name)
    if hasattr(inner, "instruct_tokenizer") or hasattr(inner, "n_words"):
        return of_mistral(getattr(inner, "instruct_tokenizer", inner), name)
    raise TypeError(
        "tokenizer: expected a Hugging Face, tokenizers, tiktoken, sentencepiece or mistral-common tokenizer, a "
        f"folder or a file, got {type(given).__name__}"
    )


def _load(path: Path) -> Any:
    if path.exists():
        check_regular(path)
    if path.suffix == ".model" and path.is_file():
        from sentencepiece import SentencePieceProcessor

        return SentencePieceProcessor(model_file=str(path))
    if path.is_file() and not (path.parent / "tokenizer_config.json").exists():
        from tokenizers import Tokenizer

        return Tokenizer.from_file(str(path))
    from transformers import AutoTokenizer

    folder = path.parent if path.is_file() else path
    return AutoTokenizer.from_pretrained(str(folder), local_files_only=True, trust_remote_code=False)


def _of_hugging_face(tokenizer: Any, name: str) -> TokenizerFacts:
    added = dict(tokenizer.added_tokens_decoder)
    backend = getattr(tokenizer, "backend_tokenizer", None)
    base = {} if backend is None else backend.get_vocab(with_added_tokens=False)

    def encode_all(texts: Sequence[str]) -> list[list[int]]:
        return list(tokenizer(list(texts), add_special_tokens=False)["input_ids"]) if texts else []

    return TokenizerFacts(
        name=name,
        library="transformers",
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
        library="tokenizers",
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
