"""Ids as runs."""

from __future__ import annotations

from rlvitals.preflight.spans import SHOWN, runs, spans


def test_neighbours_join_and_order_and_doubles_do_not_matter() -> None:
    assert list(runs([7, 3, 4, 5, 4])) == [(3, 5), (7, 7)]
    assert spans([7, 3, 4, 5]) == "3-5, 7"
    assert spans([]) == ""


def test_many_runs_are_counted_and_not_listed() -> None:
    assert spans(range(0, 2 * (SHOWN + 3), 2)).endswith("and 3 more runs")
