"""What decoders print for bytes that are no text: by hand, and against the decoders themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, decoders, models

from rlvitals.probes.arguments import DtypeError, ShapeError
from rlvitals.probes.decoder import Damage
from rlvitals.probes.decoding import decoded_replacements, undecodable
from rlvitals.probes.scan import code_rows, scan
from rlvitals.probes.text import pack
from rlvitals.probes.tokens import TokenTable
from rlvitals.probes.vocabulary import byte_alphabet, find_source
from tests.client.probes.test_vocabulary import sentencepiece

WORD, END = 256, 257


def byte_level() -> Tokenizer:
    alphabet = byte_alphabet()
    tokenizer = Tokenizer(models.BPE(vocab={alphabet[b]: b for b in range(256)} | {"ok": WORD}, merges=[]))
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken("<|end|>", special=True, normalized=False)])
    return tokenizer


def byte_fallback() -> Tokenizer:
    vocabulary = {f"<0x{b:02X}>": b for b in range(256)} | {"ok": WORD, "</s>": END}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[], byte_fallback=True))
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    tokenizer.add_special_tokens([AddedToken("</s>", special=True, normalized=False)])
    return tokenizer


def spelt(*parts: bytes | int) -> list[int]:
    """Ids of both of these tokenizers: a byte each, and others by number."""
    return [i for part in parts for i in (part if isinstance(part, bytes) else [part])]


# ids: (U+FFFD of a byte-level decoder, of a ByteFallback decoder, of sentencepiece)
CASES: dict[str, tuple[list[int], int, int, int]] = {
    "orphan between text": (spelt(WORD, b"\x80", WORD), 1, 1, 1),
    "cut at the end": (spelt(b"\xf0\x9f\x98"), 1, 3, 3),
    "two of three, then text": (spelt(b"\xe4\xbd", WORD), 1, 2, 2),
    "orphan between characters": (spelt("你".encode(), b"\x80", "好".encode()), 1, 7, 1),
    "character, then cut": (spelt("你".encode(), b"\xe4\xbd"), 1, 5, 2),
    "newline byte, then cut": (spelt(b"\n\xe4"), 1, 2, 1),
    "overlong": (spelt(b"\xc0\x80"), 2, 2, 2),
    "surrogate": (spelt(b"\xed\xa0\x80"), 3, 3, 3),
    "above the last character": (spelt(b"\xf4\x90\x80\x80"), 4, 4, 4),
    "U+FFFD itself": (spelt(b"\xef\xbf\xbd"), 1, 1, 1),
    "broken lead before a character": (spelt(b"\xe4\xc3\xa9"), 1, 3, 1),
    "well-formed": (spelt(WORD, "é你😀".encode(), WORD), 0, 0, 0),
    "nothing": ([], 0, 0, 0),
}


@pytest.mark.parametrize("name", CASES)
def test_each_family_shows_damage_in_its_own_way(name: str) -> None:
    ids, *expected = CASES[name]
    tables = [TokenTable.read(byte_level()), TokenTable.read(byte_fallback())]
    packed = pack([ids])
    assert [int(decoded_replacements(table, *packed)[0]) for table in tables] == expected[:2]
    model = sentencepiece("bpe", True)
    first, word = model.piece_to_id("<0x00>"), model.piece_to_id("<tool>")
    others = pack([[word if i == WORD else first + i for i in ids]])
    assert int(decoded_replacements(TokenTable.read(model), *others)[0]) == expected[2]


# bytes at every edge of the grammar, a word and a special token
EDGES = [0x41, 0x80, 0x90, 0x9F, 0xA0, 0xBD, 0xBF, 0xC0, 0xC3, 0xE0, 0xE4, 0xED, 0xEF, 0xF0, 0xF4, 0xFF, WORD, END]
rows_of_edges = st.lists(st.lists(st.sampled_from(EDGES), max_size=12), min_size=1, max_size=24)


def assert_as_decoded(table: TokenTable, tokenizer: Any, rows: list[list[int]]) -> None:
    ids, lengths = pack(rows)
    for skip in (False, True):
        expected = [find_source(tokenizer).decode(row, skip).count("\ufffd") for row in rows]
        assert decoded_replacements(table, ids, lengths, skip_special=skip).tolist() == expected


LEVEL, FALLBACK = (TokenTable.read(tokenizer()) for tokenizer in (byte_level, byte_fallback))


@settings(max_examples=30, deadline=None)
@given(rows_of_edges)
def test_counts_are_those_of_a_byte_level_decoder(rows: list[list[int]]) -> None:
    assert LEVEL.decoders[True].damage is Damage.SUBPART
    assert_as_decoded(LEVEL, byte_level(), rows)


@settings(max_examples=30, deadline=None)
@given(rows_of_edges)
def test_counts_are_those_of_a_byte_fallback_decoder(rows: list[list[int]]) -> None:
    assert FALLBACK.decoders[True].damage is Damage.RUN
    assert_as_decoded(FALLBACK, byte_fallback(), rows)


@settings(max_examples=30, deadline=None)
@given(rows_of_edges)
def test_counts_are_those_of_sentencepiece(rows: list[list[int]]) -> None:
    model = sentencepiece("bpe", True)
    table = TokenTable.read(model)
    first = model.piece_to_id("<0x00>")
    number = {WORD: model.piece_to_id("<tool>"), END: model.piece_to_id("</s>")}
    assert table.decoders[True].damage is Damage.BYTE
    assert_as_decoded(table, model, [[number.get(i, first + i) for i in row] for row in rows])


def test_a_special_token_inside_a_character_heals_it_only_where_it_is_left_out() -> None:
    ids, lengths = pack([spelt(b"\xe4\xbd", END, b"\xa0")])
    assert decoded_replacements(LEVEL, ids, lengths, skip_special=True).tolist() == [0]
    assert decoded_replacements(LEVEL, ids, lengths, skip_special=False).tolist() == [2]


def test_counts_that_are_known_already_change_nothing() -> None:
    draw = np.random.default_rng(2)
    ids = draw.choice([0x41, 0x80, 0xBD, 0xE4, 0xF0, WORD, END, 700, -3], (60, 30))
    lengths = draw.integers(0, 31, 60)
    for table in (LEVEL, FALLBACK):
        mask = np.arange(30) < lengths[:, None]
        seen = scan(table.maps, code_rows(table.map_of, table.slots(ids), mask))
        for skip in (False, True):
            alone = decoded_replacements(table, ids, lengths, skip_special=skip)
            assert (
                decoded_replacements(table, ids, lengths, skip_special=skip, seen=seen).tolist() == alone.tolist()
            )
            assert decoded_replacements(table, ids, mask, skip_special=skip).tolist() == alone.tolist()


def test_stretches_that_the_policy_chose_are_decoded_apart() -> None:
    ids = np.asarray([spelt(b"\xe4\xbd\xa0", WORD, b"\xe4\xbd\xa0")])
    parts = np.asarray([[1, 1, 0, 1, 0, 1, 1]])
    assert decoded_replacements(LEVEL, ids, parts).tolist() == [1 + 2]
    assert decoded_replacements(FALLBACK, ids, parts).tolist() == [2 + 2]


def test_ids_that_decode_refuses_are_told() -> None:
    ids = np.asarray([[1, 2], [-1, 2], [1 << 32, 2], [1, 700]])
    assert undecodable(LEVEL, ids, np.full(4, 2)).tolist() == [False, True, True, False]
    assert undecodable(LEVEL, ids, np.zeros(4, int)).tolist() == [False] * 4


def test_arguments_of_the_wrong_kind_or_shape_are_told_by_name() -> None:
    with pytest.raises(DtypeError, match="ids: expected integers"):
        decoded_replacements(LEVEL, np.zeros((2, 3)), np.zeros(2, int))
    with pytest.raises(ShapeError, match=r"ids: expected \(B, T\)"):
        decoded_replacements(LEVEL, np.zeros(3, int), np.zeros(2, int))
    with pytest.raises(ShapeError, match=r"chosen: expected lengths \(2,\) or a mask \(2, 3\)"):
        decoded_replacements(LEVEL, np.zeros((2, 3), int), np.zeros((2, 4), int))
    with pytest.raises(ShapeError, match="chosen"):
        undecodable(LEVEL, np.zeros((2, 3), int), np.zeros(5, int))
