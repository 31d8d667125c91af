"""Sums per id: exact in a process, bounded on the wire."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from rlvitals.contract import codec
from rlvitals.probes.id_sums import DENSE_UP_TO, IDS_ON_THE_WIRE, IdAdder, IdSums


def of(pairs: dict[int, float]) -> IdSums:
    return IdSums.of(np.array(list(pairs), np.int64), np.array(list(pairs.values())))


def test_the_top_id_and_its_share_are_exact_after_merging() -> None:
    merged = of({7: 3.0, 9: 1.0}) + of({9: 4.0, 11: 2.0})
    assert merged.top() == (9, 0.5)


def test_nothing_to_share_is_none_and_not_nan() -> None:
    assert IdSums().top() is None
    assert IdSums.of(np.array([3]), np.array([0.0])).top() is None


def test_an_infinite_amount_owns_the_whole_and_two_share_it() -> None:
    assert of({5: math.inf, 6: 1.0}).top() == (5, 1.0)
    assert of({6: math.inf, 5: math.inf, 1: 9.0}).top() == (5, 0.5)


def test_ids_that_are_negative_or_huge_are_counted_like_others() -> None:
    counts = IdSums.count(np.array([-5, 1 << 50, -5, 2]))
    assert counts.ids.tolist() == [-5, 2, 1 << 50]
    assert counts.amounts.tolist() == [2, 1, 1]
    assert (counts + of({2: 1.0})).amounts.tolist() == [2, 2, 1]


def test_the_wire_names_the_largest_and_bounds_the_error_of_the_share() -> None:
    draw = np.random.default_rng(0)
    exact = IdSums.of(np.arange(10_000), draw.random(10_000))
    wire = IdSums.from_dict(json.loads(json.dumps(exact.to_dict())))
    assert wire.ids.size == IDS_ON_THE_WIRE
    assert math.isclose(wire.total, exact.total, rel_tol=1e-12)
    assert wire.slack <= wire.amounts.min()
    merged, truth = wire + of({9_999: 0.5}), exact + of({9_999: 0.5})
    found, expected = merged.top(), truth.top()
    assert found is not None
    assert expected is not None
    assert expected[1] - merged.slack / merged.total - 1e-12 <= found[1] <= expected[1] + 1e-12


def test_infinite_amounts_survive_the_wire() -> None:
    assert IdSums.from_dict(json.loads(json.dumps(of({5: math.inf}).to_dict(), allow_nan=False))).top() == (5, 1.0)


def test_ids_and_amounts_of_different_number_are_refused() -> None:
    with pytest.raises(codec.DecodeError, match="2 numbers, one for each id"):
        IdSums.from_dict({"ids": [1, 2], "amounts": [1.0], "rest": 0.0, "slack": 0.0})


def test_blocks_add_up_to_what_their_sums_add_up_to() -> None:
    adder, draw = IdAdder(), np.random.default_rng(0)
    ids, amounts = draw.integers(-2, 40, (6, 30)), draw.random((6, 30))
    ids[3, 3] = DENSE_UP_TO + 5
    merged = IdSums()
    for block, amount in zip(ids, amounts, strict=True):
        adder.add(block, amount)
        merged += IdSums.of(block, amount)
    adder.add(ids[:0].ravel(), amounts[:0].ravel())
    assert adder.sums().ids.tolist() == merged.ids.tolist()
    assert adder.sums().amounts == pytest.approx(merged.amounts)


def test_an_adder_that_saw_nothing_has_no_sums() -> None:
    assert IdAdder().sums() == IdSums()
