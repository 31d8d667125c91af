"""One table per vocabulary, built once: the class and the UTF-8 map of every id."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rlvitals import notices
from rlvitals.probes import token_cache
from rlvitals.probes.arguments import VocabularyError
from rlvitals.probes.arrays import Flags, Whole
from rlvitals.probes.decoder import Damage, Decoder
from rlvitals.probes.measured import Measured
from rlvitals.probes.self_test import try_decoders, try_unassigned
from rlvitals.probes.token_classes import BYTE_PIECES, FRAGMENTS, NEVER_TRAINED, TokenClass
from rlvitals.probes.token_codes import TokenCodes, code_ids
from rlvitals.probes.token_ranges import TokenRanges, byte_pieces, never_trained, tell_ranges
from rlvitals.probes.utf8 import Maps
from rlvitals.probes.vocabulary import Decode, Family, Source, Vocabulary, find_source
from rlvitals.probes.vocabulary.black_box import see_by_decoding

__all__ = ["BYTE_PIECES", "FRAGMENTS", "NEVER_TRAINED", "TokenClass", "TokenRanges", "TokenTable"]

SEEN_ONLY = "this tokenizer is known by its decode alone: a broken character and a cut one look the same"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TokenTable:
    """``classes`` and ``map_of`` have ``rows + 1`` entries, indexed by id; the last stands for ids out of range.

    ``mismatch`` is empty when the table agreed with the tokenizer's own decode on random ids, else it says how
    it did not; UTF-8 signals are then missing with that reason, and ids are classed by decoding each alone.
    ``spelt``, ``special``, ``decoders`` (specials kept, specials left out) and ``decode`` are for
    `decoding.decoded_replacements`.
    """

    family: Family
    rows: int
    classes: npt.NDArray[np.uint8]
    map_of: npt.NDArray[np.uint16]
    maps: Maps
    pieces: dict[int, bytes] = field(repr=False)
    spelt: npt.NDArray[np.uint16]
    special: Flags
    decoders: tuple[Decoder, Decoder] = (Decoder(), Decoder())
    decode: Decode | None = field(default=None, repr=False)
    mismatch: str = ""
    ranges: TokenRanges = field(default_factory=TokenRanges)
    _marks: dict[str, Flags] = field(default_factory=dict, init=False, repr=False)
    """As long as the vocabulary, and asked for at each step: made once."""

    @classmethod
    def read(
        cls,
        tokenizer: Any,
        rows: int | None = None,
        ranges: TokenRanges | None = None,
        cache: Path | None = None,
    ) -> TokenTable:
        """Reads any tokenizer; takes well under a second for 152k ids, seconds where only its decode tells.

        ``rows`` are the rows of the live embedding (``model.get_input_embeddings().weight.shape[0]``); without it
        only ids up to the tokenizer's largest are in range. ``ranges`` override what the vocabulary says, and what
        each holds is logged. ``cache`` is a folder in which tables are kept between runs, such as
        `token_cache.cache_folder()`.

        Raises `VocabularyError` for what is no tokenizer or has no tokens.
        """
        source = find_source(tokenizer, rows)
        told = source.fingerprint() if cache is not None else None
        path = None if cache is None or told is None else token_cache.cache_path(cache, told, rows)
        table = None if path is None else cls._load(path, source)
        if table is None:
            table = cls._build(source, rows, str(type(tokenizer)))
            if path is not None and not table.mismatch:
                codes = TokenCodes(
                    classes=table.classes,
                    map_of=table.map_of,
                    spelt=table.spelt,
                    special=table.special,
                    maps=table.maps,
                )
                token_cache.save(path, table.family, codes, table.pieces, table.decoders)
        table = replace(table, decode=source.decode, ranges=ranges or TokenRanges())
        held = table.range_census()
        if held:
            notices.once(f"token ranges {held}", f"of the ranges of token ids that you gave:\n{held}")
        return table

    @classmethod
    def from_tokenizer(cls, tokenizer: Any, rows: int | None = None) -> TokenTable:
        """`read` without overrides and without a cache."""
        return cls.read(tokenizer, rows)

    @classmethod
    def _load(cls, path: Path, source: Source) -> TokenTable | None:
        """The table that lies there, where it still agrees with the tokenizer."""
        stored = token_cache.load(path)
        if stored is None:
            return None
        family, codes, pieces, decoders = stored
        table = cls._of(family, codes, pieces)
        verdict = try_decoders(table, source.decode, decoders)
        return None if verdict.mismatch else replace(table, decoders=verdict.decoders)

    @classmethod
    def _build(cls, source: Source, rows: int | None, told: str) -> TokenTable:
        vocabulary = source.read()
        if not vocabulary.pieces:
            raise VocabularyError("tokenizer", "a vocabulary with at least one token", f"{told} with none")
        rows = rows if rows is not None else max(vocabulary.pieces) + 1
        table = cls._coded(vocabulary, rows)
        if vocabulary.family is Family.OPAQUE:
            return table._seen_only(source, SEEN_ONLY)
        verdict = try_decoders(table, source.decode)
        if verdict.mismatch:
            seen = cls._coded(see_by_decoding(vocabulary, source.decode), rows)
            return seen._seen_only(source, verdict.mismatch)
        return replace(table, decoders=verdict.decoders)

    def _seen_only(self, source: Source, reason: str) -> TokenTable:
        decoder = Decoder(damage=Damage.SEEN, unassigned=try_unassigned(self, source.decode))
        return replace(self, decoders=(decoder, decoder), mismatch=reason)

    @classmethod
    def _coded(cls, vocabulary: Vocabulary, rows: int) -> TokenTable:
        return cls._of(vocabulary.family, code_ids(vocabulary, rows), dict(vocabulary.pieces))

    @classmethod
    def _of(cls, family: Family, codes: TokenCodes, pieces: dict[int, bytes]) -> TokenTable:
        return cls(
            family=family,
            rows=codes.classes.size - 1,
            classes=codes.classes,
            map_of=codes.map_of,
            spelt=codes.spelt,
            special=codes.special,
            maps=codes.maps,
            pieces=pieces,
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
        if "byte_pieces" not in self._marks:
            self._marks["byte_pieces"] = byte_pieces(self.classes, self.ranges)
        return self._marks["byte_pieces"]

    def never_trained(self) -> Flags:
        """Per id (rows + 1,): what ``text.never_trained_rate`` counts, by the classes or by the user's ranges."""
        if "never_trained" not in self._marks:
            self._marks["never_trained"] = never_trained(self.classes, self.ranges)
        return self._marks["never_trained"]

    def range_census(self, ranges: TokenRanges | None = None) -> str:
        """What each range of the user holds, a line each; of ``ranges``, or of those the table was read with."""
        return tell_ranges(self.classes[: self.rows], ranges or self.ranges)
