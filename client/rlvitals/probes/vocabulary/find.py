"""Which kind of tokenizer an object is, whatever wraps it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from rlvitals.probes.arguments import VocabularyError
from rlvitals.probes.vocabulary.black_box import find_black_box
from rlvitals.probes.vocabulary.hugging_face import find_hugging_face
from rlvitals.probes.vocabulary.mistral import find_mistral
from rlvitals.probes.vocabulary.pure_python import find_pure_python
from rlvitals.probes.vocabulary.sentencepiece_model import find_sentencepiece
from rlvitals.probes.vocabulary.tiktoken_encoding import find_tiktoken
from rlvitals.probes.vocabulary.vocabulary import Source, Vocabulary

_KINDS = (find_hugging_face, find_tiktoken, find_sentencepiece, find_mistral)
# where processors, instruct tokenizers and adapters keep what they wrap
_INSIDE = ("tokenizer", "instruct_tokenizer")
_DEEPEST = 4

EXPECTED = (
    "a Hugging Face tokenizer, a tiktoken Encoding, a sentencepiece processor, a mistral-common tokenizer "
    "or anything with decode"
)


def find_source(tokenizer: Any, rows: int | None = None) -> Source:
    """By what reads it best: its own tables, else its list of tokens, else its decode alone.

    ``rows`` is how many ids to try where only decoding tells. Raises `VocabularyError` for what cannot decode or
    does not say how many ids it has.
    """
    wrapped = list(_unwrap(tokenizer))
    for depth, candidate in enumerate(wrapped):
        source = _own_tables(candidate) or _listed(candidate, wrapped[depth + 1 :])
        if source is not None:
            return source
    for candidate in wrapped:
        source = find_black_box(candidate, rows)
        if source is not None:
            return source
    raise VocabularyError("tokenizer", EXPECTED, str(type(tokenizer)))


def _own_tables(candidate: Any) -> Source | None:
    return next((source for find in _KINDS if (source := find(candidate)) is not None), None)


def _listed(candidate: Any, inside: Sequence[Any]) -> Source | None:
    """A tokenizer in pure Python; where one with tables of its own is inside, both know tokens."""
    outer = find_pure_python(candidate)
    if outer is None:
        return None
    mistral = next((source for inner in inside if (source := find_mistral(inner)) is not None), None)
    if mistral is not None:
        # the adapter's list of tokens has lost their bytes
        return mistral
    inner = next((source for inner in inside if (source := _own_tables(inner)) is not None), None)
    return outer if inner is None else Source(decode=outer.decode, read=lambda: _merged(outer, inner))


def _merged(outer: Source, inner: Source) -> Vocabulary:
    """The inner's bytes; special and added tokens may be known to either alone."""
    base = inner.read()
    try:
        listed = outer.read()
    except VocabularyError:  # it lists nothing
        return base
    return replace(
        base,
        pieces={**listed.pieces, **base.pieces},
        special=base.special | listed.special,
        added={**base.added, **listed.added},
    )


def read_vocabulary(tokenizer: Any, rows: int | None = None) -> Vocabulary:
    """The pieces of a tokenizer; raises `VocabularyError` as `find_source` does, and for one without a token."""
    vocabulary = find_source(tokenizer, rows).read()
    if not vocabulary.pieces:
        raise VocabularyError("tokenizer", "a vocabulary with at least one token", f"{type(tokenizer)} with none")
    return vocabulary


def _unwrap(tokenizer: Any) -> Iterator[Any]:
    """The object, then what it wraps, from the outside in."""
    for _ in range(_DEEPEST):
        if tokenizer is None:
            return
        yield tokenizer
        tokenizer = next(
            (inner for name in _INSIDE if (inner := getattr(tokenizer, name, None)) is not None), None
        )
