from __future__ import annotations

import math
from itertools import pairwise

import pytest

from rlvitals.contract.report import Histogram
from rlvitals_monitor.store.charts import Span
from rlvitals_monitor.store.distributions import read_spread
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.ingest import store_batch
from rlvitals_monitor.store.runs import find_attempt
from tests.monitor.batches import NOW, batch


def put(store: Store, steps: range, edges: tuple[float, ...] = (0.0, 1.0, math.inf)) -> None:
    told = [
        Histogram(seq=seq, step=step, metric="length.mean", edges=edges, counts=(seq, 1))
        for seq, step in enumerate(steps, start=1)
    ]
    with store.begin() as connection:
        store_batch(connection, batch(histograms=tuple(told)), NOW)


def spread(store: Store, columns: int, first: int | None = None, last: int | None = None) -> list[int]:
    with store.read() as connection:
        number, _ = find_attempt(connection, "r1")
        found = read_spread(connection, number, "length.mean", Span(first=first, last=last), columns)
    return [histogram.step for histogram in found]


def test_few_steps_come_all_with_their_infinite_edge(store: Store) -> None:
    put(store, range(5))
    assert spread(store, 10) == [0, 1, 2, 3, 4]
    with store.read() as connection:
        number, _ = find_attempt(connection, "r1")
        (first, *_) = read_spread(connection, number, "length.mean", Span(), 10)
    assert (first.edges, first.counts) == ((0.0, 1.0, math.inf), (1, 1))


def test_many_steps_come_evenly_and_the_newest_is_among_them(store: Store) -> None:
    put(store, range(-50, 950))
    steps = spread(store, 150)
    assert 100 <= len(steps) <= 150
    assert steps[-1] == 949
    assert {b - a for a, b in pairwise(steps[:-1])} == {7}


def test_a_span_has_its_own_steps_only(store: Store) -> None:
    put(store, range(0, 100, 10))
    assert spread(store, 50, 15, 55) == [20, 30, 40, 50]
    assert spread(store, 50, 41, 49) == []


@pytest.mark.parametrize("columns", [2, 3, 7])
def test_never_more_than_asked_for(store: Store, columns: int) -> None:
    put(store, range(0, 23, 2))
    assert 0 < len(spread(store, columns)) <= columns


def test_a_metric_without_histograms_has_none(store: Store) -> None:
    put(store, range(1))
    with store.read() as connection:
        number, _ = find_attempt(connection, "r1")
        assert read_spread(connection, number, "reward.mean", Span(), 5) == []
