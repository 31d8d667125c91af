"""Lengths, truncation and stops."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rlvitals.probes.lengths import tally_lengths

STOP = {2, 9}


def test_truncated_is_at_the_cap_without_a_stop_id() -> None:
    measured = tally_lengths([8, 8, 3, 5, 0], [7, 9, 2, 7, 2], STOP, 8).measured()
    assert measured.values["length.truncation_rate"] == 0.2
    assert measured.values["length.stop_rate"] == 0.4
    assert measured.values["length.mean"] == 4.8
    assert measured.values["length.completions"] == 5


def test_a_stop_id_exactly_at_the_cap_is_no_truncation_and_an_early_end_without_one_is_neither() -> None:
    values = tally_lengths([8, 5], [2, 7], STOP, 8).measured().values
    assert (values["length.truncation_rate"], values["length.stop_rate"]) == (0.0, 0.5)


def test_the_engines_finish_reason_overrules_the_rule() -> None:
    values = tally_lengths([5, 5], [7, 7], STOP, 8, truncated=torch.tensor([True, False])).measured().values
    assert values["length.truncation_rate"] == 0.5


def test_empty_is_nothing_or_a_lone_stop_id() -> None:
    values = tally_lengths([0, 1, 1, 4], [2, 2, 7, 2], STOP, 8).measured().values
    assert values["length.empty_rate"] == 0.5


def test_shortest_and_longest_are_named() -> None:
    extremes = tally_lengths([5, 2, 9], [1, 1, 1], STOP, 10, sample_offset=3).measured().extremes
    assert (extremes["length.min"].value, extremes["length.min"].sample) == (2.0, 4)
    assert (extremes["length.max"].value, extremes["length.max"].sample) == (9.0, 5)


@pytest.mark.parametrize(
    ("stop_ids", "cap", "absent"),
    [
        (STOP, None, {"length.truncation_rate"}),
        (set(), 8, {"length.truncation_rate", "length.stop_rate"}),
        (set(), None, {"length.truncation_rate", "length.stop_rate"}),
    ],
)
def test_what_is_not_known_is_missing_with_a_reason_and_not_zero(
    stop_ids: set[int], cap: int | None, absent: set[str]
) -> None:
    measured = tally_lengths([8], [7], stop_ids, cap).measured()
    assert set(measured.missing) == absent
    assert not absent & measured.values.keys()


def test_without_completions_all_is_missing_but_their_number() -> None:
    measured = tally_lengths([], [], STOP, 8).measured()
    assert measured.values == {"length.completions": 0.0}
    assert {"length.mean", "length.min", "length.max", "length.truncation_rate"} <= set(measured.missing)


def test_the_histogram_counts_every_completion_in_octave_quarters() -> None:
    edges, counts = tally_lengths([0, 1, 2, 2, 300], [1] * 5, STOP, 500).measured().histograms["length.mean"]
    assert sum(counts) == 5
    assert len(edges) == len(counts) + 1
    assert edges[0] == 0.0
    assert edges[-2] <= 300 < edges[-1]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=20), st.integers(0, 20))
def test_generations_add_up_to_the_batch(rows: list[tuple[int, int]], cut: int) -> None:
    cut = min(cut, len(rows))

    def part(start: int, stop: int) -> object:
        chosen = rows[start:stop]
        return tally_lengths([n for n, _ in chosen], [i for _, i in chosen], STOP, 8, sample_offset=start)

    split = part(cut, len(rows)) + part(0, cut)  # type: ignore[operator]
    assert split == part(0, len(rows))


def test_lengths_without_their_last_ids_are_refused() -> None:
    with pytest.raises(ValueError, match="one last id per completion, got 1 of 2"):
        tally_lengths([1, 2], [1], STOP, 8)
