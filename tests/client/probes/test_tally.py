"""A Tally is a commutative monoid, and survives JSON with NaN and infinities told apart."""

from __future__ import annotations

import json
import math
from functools import reduce
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvitals.contract import codec
from rlvitals.contract.report import Extreme
from rlvitals.probes.id_sums import IdSums
from rlvitals.probes.sketch import Moments, Sketch
from rlvitals.probes.tally import Tally

NAMES = st.sampled_from(["a", "b", "c"])
# multiples of 1/8: sums of these are exact, so that associativity can be asked for to the last bit
EXACT = st.integers(-800, 800).map(lambda n: n / 8)
VALUES = st.one_of(EXACT, st.sampled_from([math.inf, -math.inf]))
PLACES = st.one_of(st.none(), st.integers(0, 3))
EXTREMES = st.builds(
    Extreme, value=VALUES, token_id=PLACES, position=PLACES, sample=PLACES, masked=st.sampled_from([None, False])
)
WITNESSES = st.builds(Extreme, value=st.sampled_from([1.0, math.inf, -math.inf]), sample=PLACES, position=PLACES)
SKETCHES = st.lists(st.sampled_from([0.0, 1e-9, 1e-3, 0.5, 7.0, 1e9]), max_size=5).map(
    lambda xs: Sketch.of(np.array(xs), low=1e-4, high=1e2, bins=6)
)
ID_SUMS = st.lists(st.tuples(st.sampled_from([-3, 0, 1, 2, 1 << 40]), st.integers(1, 9)), max_size=6).map(
    lambda pairs: IdSums.of(np.array([i for i, _ in pairs], np.int64), np.array([n / 4 for _, n in pairs]))
)
TALLIES = st.builds(
    Tally,
    counts=st.dictionaries(NAMES, st.integers(0, 1000)),
    sums=st.dictionaries(NAMES, EXACT),
    minima=st.dictionaries(NAMES, EXTREMES),
    maxima=st.dictionaries(NAMES, EXTREMES),
    firsts=st.dictionaries(NAMES, WITNESSES),
    sketches=st.dictionaries(NAMES, SKETCHES),
    by_id=st.dictionaries(NAMES, ID_SUMS),
    missing=st.dictionaries(NAMES, st.sampled_from(["no reference", "no old log-probs"])),
)


@given(TALLIES, TALLIES, TALLIES)
def test_adding_is_associative(a: Tally, b: Tally, c: Tally) -> None:
    assert (a + b) + c == a + (b + c)


@given(TALLIES, TALLIES)
def test_adding_is_commutative(a: Tally, b: Tally) -> None:
    assert a + b == b + a


@given(TALLIES)
def test_zero_is_the_identity(a: Tally) -> None:
    assert a + Tally.zero() == a == Tally.zero() + a
    assert sum([a]) == a


@given(TALLIES)
def test_a_tally_survives_json(a: Tally) -> None:
    assert Tally.from_dict(json.loads(json.dumps(a.to_dict(), allow_nan=False))) == a


@given(st.lists(EXACT, min_size=1, max_size=20), st.data())
def test_moments_of_any_split_are_those_of_the_whole(values: list[float], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(values)))
    array = np.array(values)
    parts = Moments.of(array[:cut]) + Moments.of(array[cut:])
    whole = Moments.of(array)
    assert parts.count == whole.count
    assert math.isclose(parts.mean, whole.mean, rel_tol=1e-12, abs_tol=1e-12)
    assert math.isclose(parts.spread, whole.spread, rel_tol=1e-9, abs_tol=1e-9)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_each_non_finite_number_survives_json_as_itself(value: float) -> None:
    extreme = Extreme(value=value, token_id=3, position=1, sample=0)
    tally = Tally(sums={"s": value}, firsts={"f": extreme}, by_id={"i": IdSums(rest=value)})
    back = Tally.from_dict(json.loads(json.dumps(tally.to_dict(), allow_nan=False)))
    assert repr(back.sums["s"]) == repr(back.firsts["f"].value) == repr(back.by_id["i"].rest) == repr(value)


def test_missing_survives_json_and_is_no_value() -> None:
    tally = Tally.from_dict(json.loads(json.dumps(Tally.absent(("kl.k3",), "no reference").to_dict())))
    measured = tally.measured()
    assert measured.missing == {"kl.k3": "no reference"}
    assert not measured.values


def test_a_part_that_measured_overrules_one_that_could_not() -> None:
    tally = Tally.absent(("kl.k1",), "no reference") + Tally(counts={"kl.tokens": 2}, sums={"kl.k1": 3.0})
    measured = tally.measured()
    assert measured.values["kl.k1"] == 1.5
    assert "kl.k1" not in measured.missing


def test_of_equal_extremes_the_first_sample_and_position_is_named_whatever_the_order() -> None:
    late, early = (
        Tally(maxima={"ratio.max": Extreme(value=2.0, sample=s, position=p)}) for s, p in ((1, 0), (0, 7))
    )
    assert (late + early).maxima["ratio.max"].sample == (early + late).maxima["ratio.max"].sample == 0


def test_a_damaged_tally_is_refused_with_the_field() -> None:
    plain: dict[str, Any] = Tally(counts={"kl.tokens": 1}).to_dict()
    plain["counts"] = {"kl.tokens": "many"}
    with pytest.raises(codec.DecodeError, match=r"counts\.kl\.tokens"):
        Tally.from_dict(plain)


def test_many_parts_add_up_in_any_order() -> None:
    parts = [Tally(counts={"n": i}, maxima={"m": Extreme(value=float(i % 5), sample=i)}) for i in range(50)]
    order = np.random.default_rng(0).permutation(50)
    assert reduce(lambda a, b: a + b, (parts[i] for i in order)) == sum(parts)
