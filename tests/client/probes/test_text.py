"""Text from ids against the tokenizer's own decoder: random, damaged and healthy multilingual completions."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from rlvitals.probes.text import DECODED_METRIC, UTF8_METRICS, pack, tally_text
from rlvitals.probes.text_device import DeviceText
from rlvitals.probes.tokens import TokenClass, TokenRanges, TokenTable
from tests.client.probes import qwen
from tests.client.probes.test_tokens import byte_fallback, word_pieces

HEALTHY = (
    "The answer is 42.\n",
    "因此答案是四十二。请运行 命令 安装 软件",
    "今日はとても良い天気ですね。東京へ行きます。",
    "한국어로 떠나다, 안녕하세요",
    "Привет, мир! Ответ — сорок два.",
    "الجواب هو اثنان وأربعون",
    "नमस्ते दुनिया, उत्तर बयालीस है",
    "བོད་ཡིག ནི་སྐད་ཡིག་ཅིག་ཡིན།",
    "ok 😀👍🏽 👨‍👩‍👧 done 🇩🇪",
    "∀x∈ℝ: x²≥0 ⟹ 𝒫(𝕏)",
    "𠀀𪛖 and ┌─┐ and a\u00a0b",
    "for i in range(3):\n\tprint(i)\n",
)


def damaged(table: TokenTable, shape: tuple[int, int], seed: int = 1) -> npt.NDArray[np.int64]:
    """Ordinary ids, 40 % of them pieces of characters."""
    draw = np.random.default_rng(seed)
    pieces = np.flatnonzero(table.map_of > 1)
    ordinary = draw.integers(0, 151_643, shape)
    return np.where(draw.random(shape) < 0.4, draw.choice(pieces, shape), ordinary)


def test_counts_equal_the_replacement_characters_of_decode_on_random_ids(
    table: TokenTable, fast_tokenizer: Any
) -> None:
    ids = np.random.default_rng(0).integers(0, 151_646, (64, 256))
    _, rows = tally_text(table, ids, np.full(64, 256))
    total = rows.utf8.errors + rows.utf8.tails + rows.utf8.literals
    assert total.tolist() == [fast_tokenizer.decode(row).count("\ufffd") for row in ids]
    assert total.sum() > 100


def test_counts_equal_the_replacement_characters_of_decode_on_damaged_ragged_text(
    table: TokenTable, encoding: Any
) -> None:
    ids = damaged(table, (128, 64))
    lengths = np.random.default_rng(2).integers(0, 65, 128)
    _, rows = tally_text(table, ids, lengths)
    total = rows.utf8.errors + rows.utf8.tails + rows.utf8.literals
    decoded = [encoding.decode(row[:n].tolist()).count("\ufffd") for row, n in zip(ids, lengths, strict=True)]
    assert total.tolist() == decoded
    assert (rows.utf8.tails > 0).any()


def test_three_tokens_of_look_back_equal_reading_every_byte_in_order(table: TokenTable) -> None:
    ids = damaged(table, (64, 128), seed=5)
    _, rows = tally_text(table, ids, np.full(64, 128))
    for row, errors, tails, literals in zip(
        ids, rows.utf8.errors, rows.utf8.tails, rows.utf8.literals, strict=True
    ):
        stream = b"".join(table.pieces[int(i)] for i in row).decode("utf-8", "replace")
        assert errors + tails + literals == stream.count("\ufffd")
        assert tails <= 1


@pytest.mark.parametrize("text", HEALTHY)
def test_healthy_text_of_any_script_has_no_error(table: TokenTable, encoding: Any, text: str) -> None:
    ids, lengths = pack([encoding.encode(text)])
    measured = tally_text(table, ids, lengths)[0].measured()
    assert measured.values["text.invalid_utf8_count"] == 0
    assert measured.values["text.invalid_utf8_per_1k"] == 0
    assert measured.values["text.cut_char_completions"] == 0
    assert measured.values["text.replacement_char_count"] == 0
    assert measured.values["text.never_trained_rate"] == 0
    assert not measured.missing


@pytest.mark.parametrize("text", HEALTHY)
def test_a_cut_at_any_token_is_a_tail_or_nothing_never_an_error(
    table: TokenTable, encoding: Any, text: str
) -> None:
    ids = encoding.encode(text)
    cuts = [ids[:n] for n in range(1, len(ids) + 1)]
    _, rows = tally_text(table, *pack(cuts))
    assert rows.utf8.errors.sum() == 0
    assert rows.utf8.tails.tolist() == [int(encoding.decode(cut).endswith("\ufffd")) for cut in cuts]


def test_half_a_character_before_a_special_token_is_an_error_and_before_the_end_a_cut(table: TokenTable) -> None:
    # 你 is E4 BD A0
    byte = {piece[0]: i for i, piece in table.pieces.items() if len(piece) == 1 and i < 256}
    half, end = [byte[0xE4], byte[0xBD]], 151_645
    _, rows = tally_text(table, *pack([[0, *half], [0, *half, end], [0, *half, 151_900, byte[0xA0]]]))
    assert rows.utf8.errors.tolist() == [0, 1, 2]
    assert rows.utf8.tails.tolist() == [1, 0, 0]
    assert rows.utf8.error_positions.tolist() == [3, 3, 4]


def test_tokens_that_the_policy_did_not_choose_count_for_nothing(table: TokenTable) -> None:
    ids = np.array([[0, 98, 98, 0], [151_900, 0, 0, 0]])
    chosen = torch.tensor([[1, 0, 0, 1], [0, 1, 1, 1]])
    measured = tally_text(table, ids, chosen)[0].measured()
    assert measured.values["text.invalid_utf8_count"] == 0
    assert measured.values["text.never_trained_rate"] == 0
    assert measured.values["text.top_id_share"] == 1.0
    assert measured.values["text.id0_share"] == 1.0


def test_ids_without_training_are_counted_and_the_first_is_named(table: TokenTable) -> None:
    ids = np.array([[0, 1, 2, 3], [4, 151_900, -7, 151_936], [5, 151_700, 1 << 40, 3]])
    tally, rows = tally_text(table, ids, np.full(3, 4), sample_offset=10)
    measured = tally.measured()
    assert measured.values["text.never_trained_rate"] == 5 / 12
    assert measured.values["text.out_of_range_count"] == 3
    first = measured.extremes["text.never_trained_rate"]
    assert (first.token_id, first.position, first.sample) == (151_900, 1, 11)
    assert rows.never_trained.tolist() == [0, 3, 2]
    assert rows.worst(3) == [1, 2]


def test_the_completion_with_most_errors_is_named_with_its_first_bad_token(table: TokenTable) -> None:
    orphan = next(i for i, piece in table.pieces.items() if piece == b"\x80")
    measured = tally_text(table, *pack([[0, orphan], [0, 0, orphan, orphan], [0]]))[0].measured()
    worst = measured.extremes["text.invalid_utf8_count"]
    assert (worst.value, worst.sample, worst.position, worst.token_id) == (2.0, 1, 2, orphan)
    assert measured.values["text.invalid_utf8_completions"] == 2 / 3
    assert measured.values["text.invalid_utf8_per_1k"] == 3000 / 7


def test_a_replacement_character_that_the_model_wrote_is_a_literal_not_an_error(
    table: TokenTable, encoding: Any
) -> None:
    measured = tally_text(table, *pack([encoding.encode("a\ufffdb")]))[0].measured()
    assert measured.values["text.invalid_utf8_count"] == 0
    assert measured.values["text.literal_replacement_per_1k"] > 0
    assert measured.values["text.replacement_char_count"] == 1


def test_what_the_tokenizers_own_decode_prints_stands_beside_the_canonical_count(
    table: TokenTable, fast_tokenizer: Any
) -> None:
    ids = damaged(table, (32, 40), seed=11)
    ids[5, 7], ids[6, 3] = qwen.ROWS + 5, 151_645
    tally, _ = tally_text(table, ids, np.full(32, 40))
    decoded = [fast_tokenizer.decode(row[row < 151_646], skip_special_tokens=True) for row in ids]
    values = tally.measured().values
    assert values["text.decoded_replacement_count"] == sum(text.count("\ufffd") for text in decoded)
    assert values["text.replacement_char_count"] != values["text.decoded_replacement_count"]


def test_ranges_of_the_user_replace_what_the_vocabulary_says(encoding: Any) -> None:
    ranges = TokenRanges(byte_ids=[(10, 11)], reserved_ids=[(20, 20)])
    table = TokenTable.read(encoding, qwen.ROWS, ranges)
    ids = np.array([[10, 11, 20, 151_700, 151_900, 98, 0, 0]])
    tally, rows = tally_text(table, ids, [8], sample_offset=2)
    measured = tally.measured()
    assert measured.values["text.byte_piece_ratio"] == 2 / 8
    assert measured.values["text.never_trained_rate"] == 2 / 8  # 151,700 is reserved by the vocabulary alone
    assert measured.extremes["text.never_trained_rate"].token_id == 20
    assert rows.never_trained.tolist() == [2]
    dense = DeviceText(table, "cpu").measure(torch.tensor(ids), torch.tensor([8]), sample_offset=2).tally()
    assert dense.measured().values["text.byte_piece_ratio"] == 2 / 8
    assert dense.measured().extremes == measured.extremes


def test_without_a_token_the_rates_are_missing_with_a_reason_and_never_zero(table: TokenTable) -> None:
    for ids, lengths in (pack([[], []]), pack([])):
        measured = tally_text(table, ids, lengths)[0].measured()
        assert "text.never_trained_rate" not in measured.values
        assert measured.missing["text.never_trained_rate"] == "no token chosen by the policy"
        assert "text.top_id_share" in measured.missing
        assert measured.values["text.invalid_utf8_count"] == 0


def test_a_vocabulary_without_bytes_says_why_utf8_is_missing() -> None:
    table = TokenTable.from_tokenizer(word_pieces())
    measured = tally_text(table, *pack([[1, 2]]))[0].measured()
    for name in (*UTF8_METRICS, "text.byte_piece_ratio", "text.byte_fallback_ratio"):
        assert "no byte pieces" in measured.missing[name]
    assert measured.values["text.top_id_share"] == 0.5


def test_a_table_that_failed_its_self_test_gives_no_utf8_numbers(table: TokenTable) -> None:
    from dataclasses import replace

    broken = replace(table, mismatch="the token table counts 2 U+FFFD where the decode shows 0")
    measured = tally_text(broken, *pack([[0, 1]]))[0].measured()
    assert set(UTF8_METRICS) <= set(measured.missing)
    assert "counts 2 U+FFFD" in measured.missing["text.invalid_utf8_per_1k"]
    assert measured.values["text.never_trained_rate"] == 0


def test_the_popular_byte_ratio_counts_high_bytes_only_where_bytes_are_explicit() -> None:
    table = TokenTable.from_tokenizer(byte_fallback(), 300)
    newline, high = 1 + 0x0A, 1 + 0xE4
    measured = tally_text(table, *pack([[newline, newline, high, 257]]))[0].measured()
    assert table.classes[newline] == TokenClass.BYTE_ASCII
    assert measured.values["text.byte_fallback_ratio"] == 0.25


def test_the_popular_byte_ratio_counts_fragments_in_byte_level_vocabularies(table: TokenTable) -> None:
    fragment = int(np.flatnonzero(table.classes == TokenClass.FRAG_OPEN)[0])
    measured = tally_text(table, *pack([[0, fragment, 1, 2]]))[0].measured()
    assert measured.values["text.byte_fallback_ratio"] == measured.values["text.byte_piece_ratio"] == 0.25


def test_parts_of_a_batch_add_up_to_the_batch(table: TokenTable) -> None:
    ids, lengths = damaged(table, (32, 40)), np.random.default_rng(3).integers(0, 41, 32)
    ids[7, 3] = 151_900
    whole = tally_text(table, ids, lengths)[0]
    parts = [tally_text(table, ids[a:b], lengths[a:b], sample_offset=a)[0] for a, b in ((20, 32), (0, 5), (5, 20))]
    assert sum(parts).measured() == whole.measured()


@pytest.mark.parametrize("as_lengths", [True, False])
def test_the_dense_form_for_gpus_counts_the_same(table: TokenTable, as_lengths: bool) -> None:
    ids = damaged(table, (16, 80), seed=9)
    ids[3, 4], ids[5, 0], ids[5, 1], ids[9, 60] = 151_900, -3, 1 << 40, 151_700
    lengths = np.random.default_rng(4).integers(0, 81, 16)
    chosen: Any = lengths if as_lengths else np.random.default_rng(5).random((16, 80)) < 0.8
    expected, _ = tally_text(table, ids, chosen, sample_offset=100)
    dense = DeviceText(table, "cpu").measure(torch.tensor(ids), torch.tensor(chosen), sample_offset=100).tally()
    there, here = dense.measured(), expected.measured()
    assert there.missing.keys() == {DECODED_METRIC}
    assert there.values == {name: value for name, value in here.values.items() if name != DECODED_METRIC}
    assert there.extremes == here.extremes


def test_the_dense_form_takes_an_empty_batch(table: TokenTable) -> None:
    device = DeviceText(table, "cpu")
    for shape in ((0, 0), (0, 5), (3, 0)):
        measured = device.measure(torch.zeros(shape, dtype=torch.long), torch.zeros(shape[0], dtype=torch.long))
        assert measured.tally().measured().missing["text.id0_share"] == "no token chosen by the policy"


def test_a_mask_of_another_shape_is_refused_with_both_shapes(table: TokenTable) -> None:
    with pytest.raises(ValueError, match=r"lengths \(2,\) or a mask \(2, 3\), got \(3, 2\)"):
        tally_text(table, np.zeros((2, 3), np.int64), np.ones((3, 2)))


def test_ids_may_be_tensors_of_any_integer_type(table: TokenTable) -> None:
    ids = np.array([[0, 1, 98]])
    expected = tally_text(table, ids, [3])[0].measured()
    assert tally_text(table, torch.tensor(ids, dtype=torch.int32), torch.tensor([3]))[0].measured() == expected
    assert table.rows == qwen.ROWS
