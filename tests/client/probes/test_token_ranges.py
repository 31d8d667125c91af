"""Ranges of ids given by a user: what they replace, and what is told of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models

from rlvitals.probes.arguments import ProbeArgumentError
from rlvitals.probes.text import pack, tally_text
from rlvitals.probes.token_ranges import TokenRanges
from rlvitals.probes.tokens import TokenClass, TokenTable
from rlvitals.probes.vocabulary import byte_alphabet


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    """256 bytes, two special tokens, two placeholders, one token that is added but not special."""
    made = Tokenizer(models.BPE(vocab={text: byte for byte, text in byte_alphabet().items()}, merges=[]))
    made.decoder = decoders.ByteLevel()
    special = ("<|start|>", "<|end|>", "<|reserved_0|>", "<|reserved_1|>")
    made.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in special])
    made.add_tokens([AddedToken("<tool_call>", special=False, normalized=False)])
    return made


def test_a_range_that_holds_no_byte_piece_is_told_so() -> None:
    made = Tokenizer(models.BPE(vocab={"a": 0, "b": 151_647}, merges=[]))
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([AddedToken(f"<|s{n}|>", special=True, normalized=False) for n in range(9)])
    made.add_tokens([AddedToken(f"<added{n}>", special=False, normalized=False) for n in range(8)])
    table = TokenTable.read(made, 151_936, TokenRanges(byte_ids=[(2, 255)]))
    first = made.token_to_id("<|s0|>")
    ranges = TokenRanges(byte_ids=[(first, first + 255)])
    assert table.range_census(ranges) == (
        f"{first}-{first + 255}: 9 special, 8 added, 239 unassigned, 0 byte pieces"
        " - this is not a byte range of this tokenizer"
    )


def test_the_popular_byte_range_of_qwen_is_told_for_what_it_is(table: TokenTable) -> None:
    told = table.range_census(TokenRanges(byte_ids=[(151_648, 151_903)]))
    assert told == (
        "151648-151903: 203 reserved, 53 unassigned, 0 byte pieces - this is not a byte range of this tokenizer"
    )


def test_what_the_ranges_hold_is_logged_once(tokenizer: Tokenizer, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(2):
        TokenTable.read(tokenizer, 262, TokenRanges(byte_ids=[(256, 257)]))
    TokenTable.read(tokenizer, 262)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "256-257: 2 special, 0 byte pieces - this is not a byte range" in caplog.text


def test_each_range_is_told_on_a_line_of_its_own(tokenizer: Tokenizer) -> None:
    ranges = TokenRanges(byte_ids=[(0, 255), (250, 300)], unassigned_ids=[(0, 1)], reserved_ids=[(258, 259)])
    table = TokenTable.read(tokenizer, 262, ranges)
    assert table.range_census().split("\n") == [
        "0-255: 128 text, 128 byte pieces",
        "250-300: 2 special, 1 added, 2 reserved, 1 unassigned, 39 out of range, 6 byte pieces",
        "0-1: 2 text, 0 unassigned - every id of this range has a token",
        "258-259: 2 reserved",
    ]
    assert TokenTable.read(tokenizer).range_census() == ""


def test_a_byte_range_replaces_the_classes_for_its_metric_alone(tokenizer: Tokenizer) -> None:
    ids, lengths = pack([[0xE4, 0xBD, 0xA0, 65, 66, 259, 261]])
    plain = TokenTable.read(tokenizer, 262)
    ranged = TokenTable.read(tokenizer, 262, TokenRanges(byte_ids=[(65, 66)]))
    assert np.array_equal(plain.classes, ranged.classes)
    assert np.flatnonzero(ranged.byte_pieces()).tolist() == [65, 66]
    before, after = (tally_text(table, ids, lengths)[0].counts for table in (plain, ranged))
    assert (before["text.byte_pieces"], after["text.byte_pieces"]) == (3, 2)
    # by the vocabulary alone, whatever a user calls a range
    assert before["text.byte_fallback"] == after["text.byte_fallback"] == 3
    differing = {name for name in before if before[name] != after[name]}
    assert differing == {"text.byte_pieces"}


def test_ranges_of_untrained_ids_replace_one_class_each_and_never_the_ids_out_of_range(
    tokenizer: Tokenizer,
) -> None:
    def untrained(**ranges: Any) -> list[int]:
        return np.flatnonzero(TokenTable.read(tokenizer, 263, TokenRanges(**ranges)).never_trained()).tolist()

    assert untrained() == [258, 259, 261, 262, 263]
    assert untrained(unassigned_ids=[(5, 6)]) == [5, 6, 258, 259, 263]
    assert untrained(reserved_ids=[(7, 7)]) == [7, 261, 262, 263]
    assert untrained(unassigned_ids=[], reserved_ids=[(0, 999)]) == list(range(264))


def test_settings_leave_to_the_vocabulary_what_is_auto() -> None:
    assert TokenRanges.of({"byte_ids": "auto", "reserved_ids": [(3, 5)]}) == TokenRanges(reserved_ids=[(3, 5)])
    assert TokenRanges.of({}).given() == {}


@pytest.mark.parametrize("pairs", [[(5, 4)], [(-1, 4)], [(1, 2, 3)]])
def test_a_range_that_is_none_is_refused(pairs: Any) -> None:
    with pytest.raises(ProbeArgumentError, match="byte_ids: expected ranges"):
        TokenRanges(byte_ids=pairs)


def test_a_setting_that_is_not_known_is_refused() -> None:
    with pytest.raises(ProbeArgumentError, match="bite_ids: expected one of byte_ids, "):
        TokenRanges.of({"bite_ids": [(0, 1)]})


def test_ranges_are_told_by_the_classes_of_the_vocabulary(tokenizer: Tokenizer) -> None:
    table = TokenTable.read(tokenizer, 262)
    assert table.classes[256] == TokenClass.SPECIAL
    assert table.range_census(TokenRanges(byte_ids=[(256, 257)])).startswith("256-257: 2 special, 0 byte pieces")
