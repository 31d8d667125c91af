"""Exact duplicates among the completions of one prompt."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rlvitals.probes.arguments import ProbeArgumentError
from rlvitals.probes.duplicates import tally_duplicates
from rlvitals.probes.tally import Tally
from rlvitals.probes.text import pack


def test_duplicates_are_counted_by_hand_within_their_group() -> None:
    rows = [[1, 2], [1, 2], [3], [1, 2], [1, 2], [4], [4], [4]]
    measured = tally_duplicates(*pack(rows), 4, sample_offset=8).measured()
    assert measured.values["text.duplicate_rate"] == (2 + 2) / 8
    worst = measured.extremes["text.duplicate_rate"]
    assert (worst.value, worst.sample) == (2.0, 8)


def test_a_prefix_is_no_duplicate_and_padding_does_not_matter() -> None:
    ids = np.array([[1, 2, 0, 0], [0, 0, 1, 2], [1, 2, 2, 0], [1, 0, 0, 0]])
    chosen = np.array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 1, 1, 0], [1, 0, 0, 0]])
    assert tally_duplicates(ids, chosen, 4).measured().values["text.duplicate_rate"] == 0.25
    assert tally_duplicates(*pack([[0], [0, 0], []]), 3).measured().values["text.duplicate_rate"] == 0


def test_what_a_tool_wrote_is_not_compared() -> None:
    ids = np.array([[1, 8, 2], [1, 9, 2]])
    assert tally_duplicates(ids, [3, 3], 2).measured().values["text.duplicate_rate"] == 0
    mask = np.array([[1, 0, 1], [1, 0, 1]])
    assert tally_duplicates(ids, mask, 2).measured().values["text.duplicate_rate"] == 0.5


def test_empty_completions_are_duplicates_of_each_other() -> None:
    assert tally_duplicates(*pack([[], []]), 2).measured().values["text.duplicate_rate"] == 0.5


def test_a_last_group_that_is_not_full_counts_with_what_it_has() -> None:
    assert tally_duplicates(*pack([[1], [2], [3], [3]]), 3).measured().values["text.duplicate_rate"] == 0
    assert tally_duplicates(*pack([[1], [2], [3], [3]]), 2).measured().values["text.duplicate_rate"] == 0.25


def test_groups_of_one_and_no_completion_say_why_there_is_nothing() -> None:
    alone = tally_duplicates(*pack([[1], [1]]), 1).measured()
    assert "groups of one" in alone.missing["text.duplicate_rate"]
    assert "no completion" in tally_duplicates(*pack([]), 4).measured().missing["text.duplicate_rate"]
    with pytest.raises(ProbeArgumentError, match="group_size"):
        tally_duplicates(*pack([[1]]), 0)


@settings(max_examples=25, deadline=None)
@given(
    rows=st.lists(st.lists(st.integers(0, 1), max_size=3), min_size=1, max_size=12),
    cuts=st.sets(st.integers(0, 4)),
)
def test_parts_of_whole_groups_add_up_to_the_batch(rows: list[list[int]], cuts: set[int]) -> None:
    ids, lengths = pack(rows)
    edges = sorted({0, len(rows), *(min(3 * cut, len(rows)) for cut in cuts)})
    parts = [tally_duplicates(ids[a:b], lengths[a:b], 3, sample_offset=a) for a, b in pairwise(edges)]
    assert sum(reversed(parts), Tally.zero()) == tally_duplicates(ids, lengths, 3)


def test_tensors_and_arrays_of_any_integer_type_give_the_same() -> None:
    ids = np.array([[1, -2], [1, -2], [3, 1 << 30], [3, 1 << 30]])
    expected = tally_duplicates(ids, [2, 2, 2, 2], 2)
    assert tally_duplicates(torch.tensor(ids, dtype=torch.int32), torch.full((4,), 2), 2) == expected
    assert tally_duplicates(ids.astype(np.int32), np.ones((4, 2)), 2) == expected
