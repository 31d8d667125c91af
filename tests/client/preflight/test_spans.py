"""Ids as runs."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from rlvitals.preflight.spans import SHOWN, runs, spans


def test_neighbours_join_and_order_and_doubles_do_not_matter() -> None:
    assert list(runs([7, 3, 4, 5, 4])) == [(3, 5), (7, 7)]
    assert spans([7, 3, 4, 5]) == "3-5, 7"
    assert spans([]) == ""


def test_many_runs_are_counted_and_not_listed() -> None:
    assert spans(range(0, 2 * (SHOWN + 3), 2)).endswith("and 3 more runs")


@given(st.sets(st.integers(0, 60), max_size=40))
@settings(max_examples=30, deadline=None)
def test_runs_hold_every_id_once_and_do_not_touch(ids: set[int]) -> None:
    found = list(runs(ids))
    assert {i for low, high in found for i in range(low, high + 1)} == ids
    assert all(after > before + 1 for (_, before), (after, _) in pairwise(found))
