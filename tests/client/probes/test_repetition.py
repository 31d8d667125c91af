"""Repeated 4-grams, runs of one id, and text that packs too well."""

from __future__ import annotations

import random
import string
import zlib
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rlvitals.probes.content import ContentTable
from rlvitals.probes.measured import Measured
from rlvitals.probes.repetition import WINDOW, tally_repetition
from rlvitals.probes.row_sample import RowSample
from rlvitals.probes.tally import Tally
from rlvitals.probes.text import pack
from rlvitals.probes.tokens import TokenTable
from tests.client.probes.conftest import REPOSITORY
from tests.client.probes.written import byte_table, spelt


def measured(rows: list[list[int]], **given: Any) -> Measured:
    return tally_repetition(*pack(rows), **given).measured()


def test_4grams_are_counted_by_hand_over_all_completions_together() -> None:
    # 5 of them, 3 distinct; 1 of them
    found = measured([[1, 2, 3, 4, 1, 2, 3, 4], [1, 2, 3, 4], [1, 2]], sample_offset=4)
    assert found.values["text.repetition_4gram"] == 1 / 6
    worst = found.extremes["text.repetition_4gram"]
    assert (worst.value, worst.sample) == (1 / 5, 4)


def test_4grams_equal_counting_tuples() -> None:
    rows = np.random.default_rng(0).integers(0, 4, (20, 60))
    grams = [[tuple(row[i : i + 4]) for i in range(57)] for row in rows.tolist()]
    repeated = sum(len(row) - len(set(row)) for row in grams)
    found = tally_repetition(rows, np.full(20, 60)).measured()
    assert found.values["text.repetition_4gram"] == repeated / (20 * 57)


def test_only_the_last_512_tokens_count() -> None:
    unique, loop = list(range(WINDOW)), [7] * 1000
    assert measured([loop + unique]).values["text.repetition_4gram"] == 0
    assert measured([unique + loop]).values["text.looping_completions"] == 1


def test_a_token_that_the_policy_did_not_choose_breaks_4grams_and_runs() -> None:
    ids = np.array([[5, 5, 5, 5, 5, 5, 5, 5, 5]])
    chosen = np.array([[1, 1, 1, 1, 0, 1, 1, 1, 1]])
    found = tally_repetition(ids, chosen).measured()
    assert found.values["text.repetition_4gram"] == 0.5
    assert found.values["text.longest_run"] == 4
    chosen[0, 2] = 0
    found = tally_repetition(ids, chosen).measured()
    assert found.values["text.repetition_4gram"] == 0


def test_the_longest_run_is_named_with_its_id_and_where_it_starts() -> None:
    found = measured([[1, 2, 2, 3], [4, 9, 9, 9, 9, 1], [9, 9, 9, 9]], sample_offset=10)
    run = found.extremes["text.longest_run"]
    assert found.values["text.longest_run"] == 4
    assert (run.value, run.token_id, run.position, run.sample) == (4.0, 9, 1, 11)


def test_runs_end_with_their_completion_and_padding_is_no_run() -> None:
    ids = np.array([[0, 0, 0, 1], [1, 1, 0, 0]])
    for chosen, run in (([[0, 0, 1, 1], [1, 1, 0, 0]], 2), ([[0, 0, 1, 1], [1, 0, 0, 0]], 1)):
        assert tally_repetition(ids, np.array(chosen)).measured().values["text.longest_run"] == run


def test_runs_are_found_in_every_completion_and_in_large_batches() -> None:
    ids = np.random.default_rng(1).integers(0, 1000, (300, 700))
    ids[:, ::2] = 2000
    ids[257, 650:690] = 42
    run = (
        tally_repetition(ids, np.full(300, 700), sample=RowSample(share=0.0))
        .measured()
        .extremes["text.longest_run"]
    )
    assert (run.value, run.token_id, run.position, run.sample) == (40.0, 42, 650, 257)


def test_prose_does_not_loop_and_a_loop_does(encoding: Any, table: TokenTable) -> None:
    prose = encoding.encode((REPOSITORY / "LICENSE").read_text())[:1200]
    loop = encoding.encode("I will stop now. " * 200)
    found = tally_repetition(*pack([prose, prose[:300], loop]), table=ContentTable.of(table)).measured()
    assert found.values["text.looping_completions"] == 1 / 3
    assert found.extremes["text.repetition_4gram"].sample == found.extremes["text.compression_ratio"].sample == 2


def test_bytes_that_spell_one_character_are_one_token_of_a_4gram() -> None:
    text = "ሀሁሂሃሄህሆሇለሉ"
    assert tally_repetition(*spelt(text), table=byte_table()).measured().values["text.repetition_4gram"] == 0
    twice = tally_repetition(*spelt("ሀሁሂ" * 4), table=byte_table()).measured()
    assert twice.values["text.repetition_4gram"] == 6 / 9
    with_gap, _ = spelt("ሀሁሂሃሄህ")
    chosen = np.ones_like(with_gap)
    chosen[0, 10] = 0  # the second byte of the fourth character: 3 characters before, its rest and 2 after
    gapped = tally_repetition(with_gap, chosen, table=byte_table())
    assert gapped.counts["repetition.grams"] == 1


def test_loops_longer_than_the_window_are_found_by_packing() -> None:
    period = "".join(random.Random(7).choices(string.ascii_letters + string.digits, k=600))
    found = tally_repetition(*spelt(period * 17), table=byte_table()).measured()
    assert found.values["text.repetition_4gram"] < 0.01
    assert found.values["text.compression_ratio"] > 10
    assert found.values["text.looping_completions"] == 1


def test_compression_is_that_of_zlib_over_the_last_10_000_characters() -> None:
    text = "a" * 20_000 + "".join(random.Random(5).choices("abcdefgh ", k=10_000))
    found = tally_repetition(*spelt(text, "hi"), table=byte_table(), sample_offset=2).measured()
    packed = len(zlib.compress(text[-10_000:].encode())) + len(zlib.compress(b"hi"))
    assert found.values["text.compression_ratio"] == 10_002 / packed
    assert found.extremes["text.compression_ratio"].sample == 2
    assert found.values["text.looping_completions"] == 0


def test_without_the_text_compression_is_missing_with_the_reason() -> None:
    found = measured([[1, 1, 1, 1, 1, 1]])
    assert "without a token table" in found.missing["text.compression_ratio"]
    assert found.values["text.looping_completions"] == 1


@pytest.mark.parametrize("shape", [(0, 0), (0, 5), (3, 0), (2, 4)])
def test_without_a_token_nothing_is_said_but_why(shape: tuple[int, int]) -> None:
    found = tally_repetition(np.ones(shape, np.int64), np.zeros(shape[0], np.int64), table=byte_table()).measured()
    assert found.missing["text.longest_run"] == "no token chosen by the policy"
    assert "four tokens" in found.missing["text.repetition_4gram"]
    assert "text.compression_ratio" in found.missing
    assert ("text.looping_completions" in found.missing) == (shape[0] == 0)


@settings(max_examples=25, deadline=None)
@given(
    rows=st.lists(st.lists(st.integers(1, 4), max_size=12), min_size=1, max_size=9),
    cuts=st.lists(st.integers(0, 9), max_size=3),
    share=st.sampled_from([0.0, 0.5, 1.0]),
)
def test_parts_of_a_batch_add_up_to_the_batch(rows: list[list[int]], cuts: list[int], share: float) -> None:
    ids, lengths = pack(rows)
    given: dict[str, Any] = {"table": byte_table(), "sample": RowSample(share=share)}
    edges = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    parts = [tally_repetition(ids[a:b], lengths[a:b], sample_offset=a, **given) for a, b in pairwise(edges)]
    whole = tally_repetition(ids, lengths, **given)
    assert sum(reversed(parts), Tally.zero()) == whole
    assert Tally.from_dict(whole.to_dict()) == whole


def test_tensors_and_arrays_give_the_same_with_ids_out_of_range() -> None:
    ids = np.array([[1, -5, -5, 1 << 40, 1 << 40, 1 << 40], [300, 2, 2, 2, 2, 2]])
    expected = tally_repetition(ids, [6, 5], table=byte_table())
    assert tally_repetition(torch.tensor(ids), torch.tensor([6, 5]), table=byte_table()) == expected
    short = np.array([[1, 5, 5], [7, 7, 7]])
    for other in (short.astype(np.int32), torch.tensor(short, dtype=torch.int32)):
        assert tally_repetition(other, [3, 3], table=byte_table()) == tally_repetition(
            short, [3, 3], table=byte_table()
        )
