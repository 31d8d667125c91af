"""Steps and their places, the band behind curves, and settings that differ."""

from __future__ import annotations

import math

import numpy as np

from rlvitals_monitor.comparison.band import make_band
from rlvitals_monitor.comparison.differences import compare_settings
from rlvitals_monitor.comparison.scale import STEPS, Scale


def test_between_two_told_places_an_axis_is_straight_and_beyond_them_it_is_not_known() -> None:
    scale = Scale.of([(10, 100.0), (20, 300.0)])
    places = scale.places([9, 10, 15, 20, 21])
    assert [round(p) if math.isfinite(p) else None for p in places] == [None, 100, 200, 300, None]


def test_what_is_no_number_is_no_place_and_a_count_that_falls_stays_where_it_was() -> None:
    scale = Scale.of([(1, 5.0), (2, math.nan), (3, math.inf), (4, 9.0), (5, 2.0), (6, 11.0)])
    assert scale.places([2, 4, 5, 6]).tolist() == [5.0 + 4.0 / 3.0, 9.0, 9.0, 11.0]
    assert Scale.of([(1, math.nan)]).empty
    assert not STEPS.empty


def test_a_stretch_of_the_axis_is_a_range_of_steps() -> None:
    scale = Scale.of([(10, 100.0), (20, 300.0), (30, 500.0)])
    assert scale.steps_between(150.0, 350.0) == (10, 30)
    assert scale.steps_between(None, 50.0) == (None, 10)
    assert STEPS.steps_between(3.5, 7.2) == (3, 8)
    assert STEPS.steps_between(-1e300, 1e300) == (-(2**53), 2**53)


def test_a_band_needs_two_runs_in_a_stretch_and_leaves_out_what_is_no_number() -> None:
    at = np.arange(100, dtype=np.float64)
    steady = np.full(100, 1.0)
    odd = np.where(at < 50, 2.0, math.nan)
    odd[3] = math.inf
    band = make_band([(at, steady), (at, odd)], 0.0, 99.0)
    assert band.runs == 2
    assert max(band.at) < 52
    assert (set(band.low), set(band.high)) == ({1.0}, {2.0})
    assert make_band([(at, steady)], 0.0, 99.0).at == ()
    assert make_band([(at, steady)] * 2, 5.0, 5.0).at == ()


def test_a_band_of_huge_values_is_finite() -> None:
    at = np.arange(10, dtype=np.float64)
    band = make_band([(at, np.full(10, 1.7e308)), (at, np.full(10, -1.7e308))], 0.0, 9.0)
    assert all(math.isfinite(v) for v in (*band.low, *band.middle, *band.high))


def test_settings_that_differ_come_first_by_their_dotted_names() -> None:
    one = {"lr": 1, "trainer": {"beta": 0.1, "seed": None}, "tags": ["a"], "flag": 1}
    two = {"lr": 1.0, "trainer": {"beta": 0.2}, "tags": ["a"], "flag": True}
    found = compare_settings({"a": one, "b": two}, {"a": "A", "b": "B"})
    told = [(s.name, dict(s.values), s.alike) for s in found.settings]
    assert told[:3] == [
        ("trainer.beta", {"a": 0.1, "b": 0.2}, False),
        ("trainer.seed", {"a": None}, False),
        ("flag", {"a": 1, "b": True}, False),
    ]
    assert [name for name, _, alike in told if alike] == ["lr", "tags"]
    assert found.different == 3


def test_nan_both_infinities_and_a_setting_that_is_not_told_are_four_things() -> None:
    configs = {"a": {"x": math.nan}, "b": {"x": math.nan}, "c": {"x": math.inf}, "d": {"x": -math.inf}}
    names = dict.fromkeys("abcde", "")
    assert compare_settings({k: configs[k] for k in "ab"}, names).different == 0
    for other in "cd":
        assert compare_settings({k: configs[k] for k in ("a", other)}, names).different == 1
    assert compare_settings({k: configs[k] for k in "cd"}, names).different == 1
    silent = compare_settings({"a": configs["a"], "e": {}}, names)
    assert (silent.untold, silent.different) == (("e",), 0)
