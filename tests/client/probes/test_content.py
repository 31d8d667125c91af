"""Control and invisible characters and special tokens in completions, counted from ids."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from rlvitals.probes.arguments import DtypeError, ShapeError
from rlvitals.probes.code_points import count_controls, points_of
from rlvitals.probes.content import ContentTable, tally_content
from rlvitals.probes.row_sample import RowSample
from rlvitals.probes.tally import Tally
from rlvitals.probes.text import pack
from rlvitals.probes.tokens import TokenTable
from tests.client.probes.test_text import HEALTHY
from tests.client.probes.written import byte_table, spelt

END, START = 151_645, 151_644


@pytest.fixture(scope="module")
def content(table: TokenTable) -> ContentTable:
    return ContentTable.of(table)


def piece(content: ContentTable, text: str | bytes) -> int:
    """The id of the token that is exactly ``text``."""
    wanted = text.encode() if isinstance(text, str) else text
    return next(i for i, held in content.tokens.pieces.items() if held == wanted)


def test_each_id_knows_the_controls_that_lie_whole_in_its_token(content: ContentTable) -> None:
    for token_id in np.flatnonzero(content.controls).tolist():
        assert count_controls(points_of(content.tokens.pieces[token_id].decode("utf-8", "ignore")))
    held = {i for i, text in content.tokens.pieces.items() if i < 151_643 and b"\x00" in text}
    assert held <= set(np.flatnonzero(content.controls).tolist())
    assert 40 < np.count_nonzero(content.controls) < 60  # 32 C0, 3 C1, 3 bidirectional, 9 byte order marks


@pytest.mark.parametrize("text", HEALTHY)
def test_healthy_text_of_any_script_holds_none(content: ContentTable, encoding: Any, text: str) -> None:
    values = tally_content(content, *pack([encoding.encode(text)])).measured().values
    assert values["text.control_char_per_1k"] == 0
    assert values["text.zero_width_per_1k"] == 0
    assert values["text.special_inside"] == 0


@pytest.mark.parametrize("text", [*HEALTHY, "a\x00\x85\u200bb\ue000\ufeff\u202e 你\u200d好 \U000f0000"])
def test_the_spelt_text_is_what_the_tokenizer_decodes(content: ContentTable, encoding: Any, text: str) -> None:
    ids, lengths = pack([encoding.encode(text), encoding.encode(text)[:-1]])
    decoded = [encoding.decode(row[:n].tolist()) for row, n in zip(ids, lengths, strict=True)]
    assert list(content.spell(ids, lengths).texts) == decoded


@pytest.mark.parametrize("name", ["gpt2_trim", "mistral_v1_trim", "qwen2_5_trim"])
def test_the_spelt_text_is_what_each_family_decodes(research: Path, name: str) -> None:
    tokenizer = Tokenizer.from_file(str(research / "fixtures" / f"{name}.json"))
    table = ContentTable.of(TokenTable.read(tokenizer))
    rows = [tokenizer.encode(text, add_special_tokens=False).ids for text in HEALTHY]
    # decoders that mark words drop the space before the first one
    assert [text.strip() for text in table.spell(*pack(rows)).texts] == [
        tokenizer.decode(row).strip() for row in rows
    ]
    assert tally_content(table, *pack(rows)).measured().values["text.zero_width_per_1k"] == 0


def test_controls_are_counted_by_hand_whole_and_spelt_across_tokens() -> None:
    # 8 bytes: one C0 control in one token, one private-use character across three, five letters
    ids, lengths = spelt("a\x00\ue000bc", "def")
    measured = tally_content(byte_table(), ids, lengths).measured()
    assert measured.values["text.control_char_per_1k"] == pytest.approx(1000 * 2 / 10)
    worst = measured.extremes["text.control_char_per_1k"]
    assert (worst.value, worst.token_id, worst.position, worst.sample) == (1.0, 1, 1, 0)


def test_whole_controls_are_seen_in_completions_that_are_not_read_in_full() -> None:
    ids, lengths = spelt("a\x00\x01b", "ab")
    measured = tally_content(byte_table(), ids, lengths, sample=RowSample(share=0.0), sample_offset=7).measured()
    assert measured.values["text.control_char_per_1k"] == 1000 * 2 / 6
    assert measured.extremes["text.control_char_per_1k"].sample == 7
    assert "read in full" in measured.missing["text.zero_width_per_1k"]


def test_odd_zero_width_characters_are_counted_and_those_of_emoji_are_not() -> None:
    ids, lengths = spelt("a\u200bb", "👩\u200d🚀❤\ufe0f")  # 5 and 17 bytes
    measured = tally_content(byte_table(), ids, lengths, sample_offset=3).measured()
    assert measured.values["text.zero_width_per_1k"] == 1000 / 22
    worst = measured.extremes["text.zero_width_per_1k"]
    assert (worst.value, worst.sample) == (1.0, 3)


def test_special_tokens_in_the_middle_are_named_unless_they_are_allowed_there(content: ContentTable) -> None:
    ids, lengths = pack([[0, END, 5, END], [0, START, START, 7], [9, 9, END]])

    def special(**passed: Any) -> Any:
        return tally_content(content, ids, lengths, sample_offset=4, **passed).measured()

    measured = special(stop_ids=[END])
    assert measured.values["text.special_inside"] == 1 / 3
    worst = measured.extremes["text.special_inside"]
    assert (worst.value, worst.token_id, worst.position, worst.sample) == (2.0, START, 1, 5)
    assert special().values["text.special_inside"] == 2 / 3
    assert special(stop_ids=[END], allowed_ids=[START, -1, 1 << 40]).values["text.special_inside"] == 0


def test_a_special_token_at_the_end_is_how_a_completion_ends(content: ContentTable) -> None:
    ids = np.array([[END, END, 5, START, END], [END, START, END, END, END]])  # padded on the left, on the right
    chosen = np.array([[0, 0, 1, 1, 0], [0, 1, 0, 0, 0]])
    assert tally_content(content, ids, chosen).measured().values["text.special_inside"] == 0
    chosen[0, 4] = 1
    assert tally_content(content, ids, chosen).measured().values["text.special_inside"] == 0.5


def test_tokens_that_the_policy_did_not_choose_hold_nothing_and_break_characters() -> None:
    ids, _ = spelt("a\x00\u200b\ue000b", "你a")
    nothing = np.ones_like(ids)
    nothing[0, 1:8] = 0
    values = tally_content(byte_table(), ids, nothing).measured().values
    assert values["text.control_char_per_1k"] == values["text.zero_width_per_1k"] == 0
    cut = np.array([[1, 1, 0, 1, 1, 1, 1, 1, 1], [1, 0, 1, 1, 0, 0, 0, 0, 0]])
    assert byte_table().spell(ids, cut).texts[1] == "\ufffd\n\ufffda"


def test_ids_that_are_no_text_break_a_character_and_are_no_letters(content: ContentTable) -> None:
    half = [piece(content, b"\xe4"), piece(content, b"\xbd")]
    rest = piece(content, b"\xa0")
    ids, lengths = pack([[*half, other, rest] for other in (END, 151_900, -1, 1 << 40)])
    assert content.spell(ids, lengths).texts == ("\ufffd\n\ufffd",) * 4
    measured = tally_content(content, ids, lengths).measured()
    assert "no letter" in measured.missing["text.script_han_share"]
    assert measured.values["text.special_inside"] == 0.25


@pytest.mark.parametrize("shape", [(0, 0), (0, 5), (3, 0), (2, 4)])
def test_without_a_token_the_rates_are_missing_and_an_empty_completion_is_healthy(shape: tuple[int, int]) -> None:
    measured = tally_content(byte_table(), np.ones(shape, np.int64), np.zeros(shape[0], np.int64)).measured()
    assert measured.missing["text.control_char_per_1k"] == "no token chosen by the policy"
    assert "text.zero_width_per_1k" in measured.missing
    assert ("text.special_inside" in measured.missing) == (shape[0] == 0)


def test_a_table_that_failed_its_self_test_spells_nothing(content: ContentTable) -> None:
    broken = ContentTable.of(replace(content.tokens, mismatch="it decodes otherwise"))
    measured = tally_content(broken, *pack([[0, START, 1]]), prompts=["a"]).measured()
    assert measured.values["text.special_inside"] == 1
    for name in ("text.control_char_per_1k", "text.script_latin_share", "text.foreign_script_share"):
        assert measured.missing[name] == "not measured: it decodes otherwise"


@settings(max_examples=25, deadline=None)
@given(
    texts=st.lists(st.text(st.sampled_from("ab\x00\u200d👩\ue000да是"), max_size=12), min_size=1, max_size=9),
    cuts=st.lists(st.integers(0, 9), max_size=3),
    share=st.sampled_from([0.0, 0.5, 1.0]),
)
def test_parts_of_a_batch_add_up_to_the_batch(texts: list[str], cuts: list[int], share: float) -> None:
    ids, lengths = spelt(*texts)
    prompts, sample = ["а" * (n % 3) for n in range(len(texts))], RowSample(share=share)
    edges = [0, *sorted(min(cut, len(texts)) for cut in cuts), len(texts)]
    parts = [
        tally_content(byte_table(), ids[a:b], lengths[a:b], prompts=prompts[a:b], sample=sample, sample_offset=a)
        for a, b in pairwise(edges)
    ]
    whole = tally_content(byte_table(), ids, lengths, prompts=prompts, sample=sample)
    assert sum(reversed(parts), Tally.zero()) == whole
    assert Tally.from_dict(whole.to_dict()) == whole


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_tensors_and_arrays_give_the_same(dtype: torch.dtype) -> None:
    ids, lengths = spelt("a\x00\ue000", "😀\u200d", "\u200bда")
    mask = np.arange(ids.shape[1]) < lengths[:, None]
    expected = tally_content(byte_table(), ids, lengths)
    tensor = torch.tensor(ids, dtype=dtype)
    assert tally_content(byte_table(), tensor, torch.tensor(lengths)) == expected
    assert tally_content(byte_table(), tensor, torch.tensor(mask)) == expected
    assert tally_content(byte_table(), ids.astype(np.int32), mask.astype(np.float32)) == expected


def test_one_spelling_may_serve_several_signals() -> None:
    ids, lengths = spelt("a\x00\ue000", "да")
    sample = RowSample(share=0.5, seed=3)
    text = byte_table().spell(ids, lengths, sample, sample_offset=5)
    assert tally_content(byte_table(), ids, lengths, spelt=text, sample_offset=5) == tally_content(
        byte_table(), ids, lengths, sample=sample, sample_offset=5
    )


def test_bad_arguments_are_named() -> None:
    ids, lengths = spelt("ab", "c")
    with pytest.raises(DtypeError, match="ids"):
        tally_content(byte_table(), ids.astype(np.float64), lengths)
    with pytest.raises(ShapeError, match=r"ids: expected \(B, T\)"):
        tally_content(byte_table(), ids[0], lengths)
    with pytest.raises(ShapeError, match=r"chosen: expected lengths \(2,\)"):
        tally_content(byte_table(), ids, lengths[:1])
    with pytest.raises(ShapeError, match="prompts: expected one text for each of 2 completions, got 1"):
        tally_content(byte_table(), ids, lengths, prompts=["a"])
