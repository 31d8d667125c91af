"""Ids → bytes → classes, on real and on small made-up tokenizers of each family."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models

from rlvitals.contract.report import Extreme
from rlvitals.probes.arguments import VocabularyError
from rlvitals.probes.measured import Measured
from rlvitals.probes.tokens import TokenClass, TokenTable
from rlvitals.probes.vocabulary import Family, read_vocabulary
from tests.client.probes import qwen


def byte_fallback() -> Tokenizer:
    vocabulary = {"<unk>": 0, **{f"<0x{b:02X}>": b + 1 for b in range(256)}, "▁hi": 257, "a\ufffd": 258}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[], unk_token="<unk>", byte_fallback=True))
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    tokenizer.add_special_tokens([AddedToken("<unk>", special=True, normalized=False)])
    return tokenizer


def word_pieces() -> Tokenizer:
    tokenizer = Tokenizer(models.WordPiece({"[UNK]": 0, "hi": 1, "##gh": 2, "high": 3}, unk_token="[UNK]"))
    tokenizer.decoder = decoders.WordPiece()
    return tokenizer


def test_the_256_bytes_of_qwen_are_its_first_ids_in_gpt2s_order(table: TokenTable) -> None:
    assert sorted(table.pieces[i] for i in range(256)) == [bytes([b]) for b in range(256)]
    assert [table.pieces[i] for i in (0, 93, 94, 105, 187, 188, 255)] == [
        b"!", b"~", b"\xa1", b"\xac", b"\xff", b"\x00", b"\xad",
    ]  # fmt: skip


def test_the_popular_byte_range_of_qwen_holds_no_byte_token(table: TokenTable) -> None:
    kinds = set(table.classes[151648:151851].tolist())
    assert kinds == {TokenClass.RESERVED}
    assert set(table.classes[151851:151904].tolist()) == {TokenClass.UNASSIGNED}


def test_the_census_of_qwen_is_the_known_one(table: TokenTable) -> None:
    assert table.census() == {
        "text": 150195, "special": 3, "reserved": 205, "unassigned": 85,
        "frag_open": 1255, "frag_cont": 132, "frag_close": 45, "frag_both": 3, "frag_ill": 13,
    }  # fmt: skip
    assert table.classes[qwen.ROWS] == TokenClass.OUT_OF_RANGE
    assert not table.mismatch


def test_a_fast_tokenizer_and_an_encoding_of_the_same_ranks_give_the_same_table(
    table: TokenTable, fast_tokenizer: Any
) -> None:
    other = TokenTable.from_tokenizer(fast_tokenizer, qwen.ROWS)
    assert other.family is table.family is Family.BYTE_LEVEL
    assert not other.mismatch
    assert np.array_equal(other.classes[:151646], table.classes[:151646])
    assert all(other.pieces[i] == table.pieces[i] for i in range(151646))


def test_a_processor_is_read_by_the_tokenizer_that_it_holds(fast_tokenizer: Any) -> None:
    class Processor:
        tokenizer = fast_tokenizer

    assert read_vocabulary(Processor()).family is Family.BYTE_LEVEL


def test_building_the_table_of_152k_ids_costs_less_than_a_second_of_cpu(encoding: Any) -> None:
    start = time.process_time()
    TokenTable.from_tokenizer(encoding, qwen.ROWS)
    assert time.process_time() - start < 1.0


def test_a_byte_fallback_vocabulary_has_explicit_bytes_split_at_0x80() -> None:
    table = TokenTable.from_tokenizer(byte_fallback(), 300)
    assert table.family is Family.BYTE_FALLBACK
    assert not table.mismatch
    assert table.classes[1] == TokenClass.BYTE_ASCII
    assert table.classes[1 + 0x80] == TokenClass.BYTE_HIGH
    assert table.classes[0] == TokenClass.SPECIAL
    assert table.pieces[257] == b" hi"
    assert table.classes[299] == TokenClass.UNASSIGNED


def test_a_vocabulary_without_bytes_is_plain() -> None:
    table = TokenTable.from_tokenizer(word_pieces())
    assert table.family is Family.PLAIN
    assert table.rows == 4
    assert not table.mismatch


def test_a_token_with_a_character_outside_the_byte_alphabet_stands_for_its_own_text() -> None:
    tokenizer = Tokenizer(models.BPE(vocab={"Ġé": 0, "é": 1, "中": 2, " x": 3}, merges=[]))
    tokenizer.decoder = decoders.ByteLevel()
    table = TokenTable.from_tokenizer(tokenizer)
    assert table.pieces == {0: b" \xe9", 1: b"\xe9", 2: "中".encode(), 3: b" x"}
    assert not table.mismatch


@pytest.mark.parametrize(
    "text",
    [
        "<|reserved_special_token_7|>",
        "<unused12>",
        "[control_3]",
        "<SPECIAL_20>",
        "<|extra_0|>",
        "<｜place▁holder▁no▁795｜>",
    ],
)
def test_placeholders_are_reserved_whether_special_or_not(text: str) -> None:
    for special in (True, False):
        tokenizer = Tokenizer(models.BPE(vocab={"a": 0}, merges=[]))
        tokenizer.decoder = decoders.ByteLevel()
        token = AddedToken(text, special=special, normalized=False)
        (tokenizer.add_special_tokens if special else tokenizer.add_tokens)([token])
        assert TokenTable.from_tokenizer(tokenizer).classes[1] == TokenClass.RESERVED


def test_a_decoder_that_disagrees_with_the_table_is_said_so(encoding: Any) -> None:
    class Mended:
        """An encoding whose decode hides what is broken."""

        special_tokens_set: frozenset[str] = frozenset()
        max_token_value = 255
        decode_single_token_bytes = staticmethod(encoding.decode_single_token_bytes)

        def decode(self, ids: list[int]) -> str:
            return str(encoding.decode(ids)).replace("\ufffd", "?")

    table = TokenTable.from_tokenizer(Mended())
    assert "own decode shows 0" in table.mismatch


def test_the_self_test_draws_from_its_own_generator(encoding: Any) -> None:
    np.random.seed(3)
    expected = np.random.random()
    np.random.seed(3)
    TokenTable.from_tokenizer(encoding, qwen.ROWS)
    assert np.random.random() == expected


def test_what_cannot_decode_is_refused_by_name() -> None:
    with pytest.raises(VocabularyError, match=r"expected a Hugging Face tokenizer, .*object"):
        TokenTable.from_tokenizer(object())


def test_extremes_get_the_text_of_their_token(table: TokenTable) -> None:
    measured = Measured(
        extremes={
            "kl.grad_max": Extreme(value=2.0, token_id=0),
            "ratio.max": Extreme(value=2.0, token_id=151900),
            "ratio.min": Extreme(value=0.5, token_id=187),
            "length.max": Extreme(value=9.0, sample=1),
        }
    )
    named = table.named(measured).extremes
    assert [named[n].token for n in measured.extremes] == ["!", "<no token 151900>", "\\xff", None]
