"""One table per vocabulary, built once: the class and the UTF-8 map of every id."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from enum import IntEnum
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt

from rlvitals.probes.arrays import Whole
from rlvitals.probes.measured import Measured
from rlvitals.probes.scan import code_rows, scan
from rlvitals.probes.utf8 import RESET, TRIVIAL, Maps, State, TokenMap, run, token_map
from rlvitals.probes.vocabulary import Family, Vocabulary, read_vocabulary


class TokenClass(IntEnum):
    """What an id is. Fragments are pieces of byte-level vocabularies that are not whole text."""

    TEXT = 0
    SPECIAL = 1
    ADDED = 2
    RESERVED = 3
    BYTE_ASCII = 4
    BYTE_HIGH = 5
    FRAG_OPEN = 6
    FRAG_CONT = 7
    FRAG_CLOSE = 8
    FRAG_BOTH = 9
    FRAG_ILL = 10
    UNASSIGNED = 11
    OUT_OF_RANGE = 12


FRAGMENTS = (
    TokenClass.FRAG_OPEN,
    TokenClass.FRAG_CONT,
    TokenClass.FRAG_CLOSE,
    TokenClass.FRAG_BOTH,
    TokenClass.FRAG_ILL,
)
BYTE_PIECES = (TokenClass.BYTE_HIGH, *FRAGMENTS)
NEVER_TRAINED = (TokenClass.RESERVED, TokenClass.UNASSIGNED, TokenClass.OUT_OF_RANGE)

_PLACEHOLDER = re.compile(
    r"<\|reserved_special_token_\d+\|>|<\|reserved_\d+\|>|<unused\d+>|\[unused\d+\]|<SPECIAL_\d+>|\[control_\d+\]"
    r"|<\|extra_\d+\|>|<｜place▁holder▁no▁\d+｜>"
)
_REPLACEMENT = "\ufffd".encode()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TokenTable:
    """``classes`` and ``map_of`` have ``rows + 1`` entries, indexed by id; the last stands for ids out of range.

    ``mismatch`` is empty when the table agreed with the tokenizer's own decoder on random ids, else it says how
    it did not; UTF-8 signals are then missing with that reason.
    """

    family: Family
    rows: int
    classes: npt.NDArray[np.uint8]
    map_of: npt.NDArray[np.uint16]
    maps: Maps
    pieces: dict[int, bytes] = field(repr=False)
    mismatch: str = ""

    @classmethod
    def from_tokenizer(cls, tokenizer: Any, rows: int | None = None) -> TokenTable:
        """Reads a fast Hugging Face tokenizer or a tiktoken Encoding; takes well under a second for 152k ids.

        ``rows`` are the rows of the live embedding (``model.get_input_embeddings().weight.shape[0]``); without it
        only ids up to the tokenizer's largest are in range. Raises TypeError for other tokenizers.
        """
        vocabulary = read_vocabulary(tokenizer)
        table = cls._of(vocabulary, rows if rows is not None else max(vocabulary.pieces, default=-1) + 1)
        return replace(table, mismatch=_disagreement(table, vocabulary))

    @classmethod
    def _of(cls, vocabulary: Vocabulary, rows: int) -> TokenTable:
        classes = np.full(rows + 1, TokenClass.UNASSIGNED, np.uint8)
        map_of = np.zeros(rows + 1, np.uint16)
        maps: dict[TokenMap, int] = {TRIVIAL: 0, RESET: 1}
        for token_id, piece in vocabulary.pieces.items():
            if token_id < rows:
                classes[token_id] = kind = _class(vocabulary, token_id, piece)
                if kind in BYTE_PIECES or _REPLACEMENT in piece:
                    map_of[token_id] = maps.setdefault(token_map(piece), len(maps))
        classes[rows] = TokenClass.OUT_OF_RANGE
        return cls(
            family=vocabulary.family,
            rows=rows,
            classes=classes,
            map_of=map_of,
            maps=Maps.of(list(maps)),
            pieces=dict(vocabulary.pieces),
        )

    def slots(self, ids: Whole) -> Whole:
        """``ids`` as indexes of the tables, out-of-range ones as ``rows``; the same array where none is."""
        if not ids.size or (int(ids.min()) >= 0 and int(ids.max()) <= self.rows):
            return ids
        return np.where((ids < 0) | (ids > self.rows), self.rows, ids)

    def show(self, token_id: int) -> str:
        """The token as printable text, bytes that are no text as \\xNN; for ids without a token says so.

        It is what a model wrote: whoever shows it must escape it.
        """
        piece = self.pieces.get(token_id)
        return piece.decode("utf-8", "backslashreplace") if piece is not None else f"<no token {token_id}>"

    def named(self, measured: Measured) -> Measured:
        """The same with the token's text beside each id among the extremes."""
        extremes = {
            name: replace(extreme, token=self.show(extreme.token_id)) if extreme.token_id is not None else extreme
            for name, extreme in measured.extremes.items()
        }
        return replace(measured, extremes=extremes)

    def census(self) -> dict[str, int]:
        """How many ids of the embedding each class has."""
        counts = np.bincount(self.classes[: self.rows], minlength=len(TokenClass))
        return {kind.name.lower(): int(counts[kind]) for kind in TokenClass if counts[kind]}


def _class(vocabulary: Vocabulary, token_id: int, piece: bytes) -> TokenClass:
    text = vocabulary.added.get(token_id)
    if text is not None:
        if _PLACEHOLDER.fullmatch(text):
            return TokenClass.RESERVED
        return TokenClass.SPECIAL if token_id in vocabulary.special else TokenClass.ADDED
    if token_id in vocabulary.bytes_alone:
        return TokenClass.BYTE_ASCII if piece[0] < 0x80 else TokenClass.BYTE_HIGH
    try:
        piece.decode()
    except UnicodeDecodeError:
        return _fragment(piece)
    return TokenClass.TEXT


def _fragment(piece: bytes) -> TokenClass:
    leading = next((n for n, byte in enumerate(piece) if not 0x80 <= byte <= 0xBF), len(piece))
    state, errors, _ = run(piece[leading:])
    if errors or leading > 3:
        return TokenClass.FRAG_ILL
    if leading == len(piece):
        return TokenClass.FRAG_CONT
    if state == State.BORDER:
        return TokenClass.FRAG_CLOSE
    return TokenClass.FRAG_BOTH if leading else TokenClass.FRAG_OPEN


_TEST_SHAPE = (64, 64)


def _disagreement(table: TokenTable, vocabulary: Vocabulary) -> str:
    """Compares counts of U+FFFD with the tokenizer's own decoder on random ids, half of them byte pieces."""
    ordinary = np.asarray(sorted(set(vocabulary.pieces) - set(vocabulary.added)), np.int64)
    ordinary = ordinary[ordinary < table.rows]
    if not ordinary.size:
        return "the vocabulary has no ordinary token"
    pieces = ordinary[np.isin(table.classes[ordinary], BYTE_PIECES)]
    draw = np.random.default_rng(20210823)
    ids = draw.choice(ordinary, _TEST_SHAPE)
    if pieces.size:
        ids = np.where(draw.random(_TEST_SHAPE) < 0.5, draw.choice(pieces, _TEST_SHAPE), ids)
    expected = _expected(table, vocabulary, ids)
    for row, count in zip(ids.tolist(), expected, strict=True):
        seen = vocabulary.decode(row).count("\ufffd")
        if seen != count:
            return f"the token table counts {count} U+FFFD where the tokenizer's own decode shows {seen}"
    return ""


def _expected(table: TokenTable, vocabulary: Vocabulary, ids: npt.NDArray[np.int64]) -> list[int]:
    if vocabulary.family is Family.BYTE_FALLBACK:
        return [_inflated(vocabulary, row) for row in ids.tolist()]
    found = scan(table.maps, code_rows(table.map_of, ids, None))
    counts: list[int] = (found.errors + found.tails + found.literals).tolist()
    return counts


def _inflated(vocabulary: Vocabulary, row: list[int]) -> int:
    """What a ByteFallback decoder prints: a run of byte pieces that is not valid as a whole is all U+FFFD."""
    count = 0
    for alone, run_ids in groupby(row, key=vocabulary.bytes_alone.__contains__):
        text = b"".join(vocabulary.pieces[token_id] for token_id in run_ids)
        try:
            count += text.decode().count("\ufffd")
        except UnicodeDecodeError:
            count += len(text) if alone else 0
    return count
