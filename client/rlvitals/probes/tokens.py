"""One table per vocabulary, built once: the class and the UTF-8 map of every id."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rlvitals.probes.arrays import Flags, Whole
from rlvitals.probes.measured import Measured
from rlvitals.probes.scan import code_rows, scan
from rlvitals.probes.token_classes import (
    BYTE_PIECES,
    FRAGMENTS,
    NEVER_TRAINED,
    TokenClass,
    added_class,
    byte_class,
    piece_class,
)
from rlvitals.probes.token_ranges import TokenRanges, byte_pieces, never_trained, tell_ranges
from rlvitals.probes.utf8 import RESET, TRIVIAL, Maps, TokenMap, token_map
from rlvitals.probes.vocabulary import Family, Vocabulary, read_vocabulary

__all__ = ["BYTE_PIECES", "FRAGMENTS", "NEVER_TRAINED", "TokenClass", "TokenRanges", "TokenTable"]

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
    ranges: TokenRanges = field(default_factory=TokenRanges)

    @classmethod
    def read(
        cls,
        tokenizer: Any,
        rows: int | None = None,
        ranges: TokenRanges | None = None,
        cache: Path | None = None,
    ) -> TokenTable:
        """Reads a tokenizer; takes well under a second for 152k ids.

        ``rows`` are the rows of the live embedding (``model.get_input_embeddings().weight.shape[0]``); without it
        only ids up to the tokenizer's largest are in range. ``ranges`` override what the vocabulary says,
        ``cache`` is a folder in which tables are kept between runs. Raises `VocabularyError` for other objects.
        """
        vocabulary = read_vocabulary(tokenizer)
        table = cls._of(vocabulary, rows if rows is not None else max(vocabulary.pieces, default=-1) + 1)
        return replace(table, mismatch=_disagreement(table, vocabulary), ranges=ranges or TokenRanges())

    @classmethod
    def from_tokenizer(cls, tokenizer: Any, rows: int | None = None) -> TokenTable:
        """`read` without overrides and without a cache."""
        return cls.read(tokenizer, rows)

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

    def byte_pieces(self) -> Flags:
        """Per id (rows + 1,): what ``text.byte_piece_ratio`` counts, by the classes or by the user's range."""
        return byte_pieces(self.classes, self.ranges)

    def never_trained(self) -> Flags:
        """Per id (rows + 1,): what ``text.never_trained_rate`` counts, by the classes or by the user's ranges."""
        return never_trained(self.classes, self.ranges)

    def range_census(self, ranges: TokenRanges | None = None) -> str:
        """What each range of the user holds, a line each; of ``ranges``, or of those the table was read with."""
        return tell_ranges(self.classes[: self.rows], ranges or self.ranges)


def _class(vocabulary: Vocabulary, token_id: int, piece: bytes) -> TokenClass:
    text = vocabulary.added.get(token_id)
    if text is not None:
        return added_class(text, token_id in vocabulary.special)
    return byte_class(piece[0]) if token_id in vocabulary.bytes_alone else piece_class(piece)


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
